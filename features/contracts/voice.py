"""Speech as text."""

from pathlib import Path
from typing import Protocol

__all__ = ["Transcriber"]


class Transcriber(Protocol):
    """Contract.

    - ``transcribe`` gives what is said in a recording, which may be nothing. It ends within two minutes.
    - It raises UserMustAct with the reason, in words for the person, where that cannot be done; the recording stays where it is.
    """

    async def transcribe(self, recording: Path, *, workspace: Path, owner: bool) -> str: ...
