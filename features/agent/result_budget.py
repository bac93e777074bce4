"""How much the results of one answer's calls may add to the next request."""

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from features.contracts.messages import TextBlock, ToolResultMessage, UserBlock

__all__ = ["ResultBudget"]

log = logging.getLogger("pumice.agent")

_MAX_BYTES = 204_800
"""Four full results; each tool bounds its own, but an answer may call twenty at once."""
_ALWAYS_BYTES = 2_048
"""What each result may have however many came before it: the model must never be left with nothing."""


class ResultBudget:
    """Spends in the order of the calls. What no longer fits is in a file that the result names.

    Args:
        scratch: where the files go; the tools' own cut results are there too.
    """

    def __init__(self, scratch: Path, ids: Callable[[], str]) -> None:
        self._scratch = scratch
        self._ids = ids
        self._left = _MAX_BYTES

    def fitted(self, message: ToolResultMessage) -> ToolResultMessage:
        """The message as it is, or one whose text ends where the budget does."""
        size = sum(_size(block) for block in message.content)
        if size <= max(self._left, _ALWAYS_BYTES):
            self._left = max(self._left - size, 0)
            return message
        text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
        kept = text.encode("utf-8", "replace")[: max(self._left, _ALWAYS_BYTES)].decode("utf-8", "ignore")
        self._left = 0
        note = f"[Cut after {len(kept)} of {len(text)} characters: the results of these calls are too long together. {self._kept(text)}]"
        pictures = [block for block in message.content if not isinstance(block, TextBlock)]
        return msgspec.structs.replace(message, content=[TextBlock(text=f"{kept}\n\n{note}"), *pictures])

    def _kept(self, text: str) -> str:
        path = self._scratch / f"result-{self._ids()}.txt"
        try:
            self._scratch.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            log.warning("full result not kept", extra={"facts": {"reason": error.strerror}})
            return "Ask again for less at once."
        return f"Full result: {path}"


def _size(block: UserBlock) -> int:
    return len(block.text.encode("utf-8", "replace")) if isinstance(block, TextBlock) else 0
