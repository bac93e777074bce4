"""How an answer on its way is shown: as a draft that passes, or as a message that is edited."""

from collections.abc import Callable
from typing import Protocol

from telegram.error import NetworkError, TelegramError, TimedOut

from channels.markup import RichText
from channels.telegram.api import Target, TelegramApi
from channels.telegram.lanes import Flooded
from channels.telegram.refusals import unreadable

__all__ = ["DraftSupport", "EditedPreview", "PassingPreview", "Preview"]


class Preview(Protocol):
    """Contract.

    - ``put`` shows a text in place of what was shown before; it raises what Telegram refuses.
    - ``ref`` is the message that stays on show, if there is one.
    - ``fades_after_s`` is when it has to be put again to stay on show.
    """

    ref: str | None
    fades_after_s: float

    async def put(self, text: RichText) -> None: ...


class DraftSupport:
    """Whether this bot may send drafts; one refusal is enough to go without."""

    def __init__(self) -> None:
        self.works = True


class PassingPreview:
    """A draft, which Telegram shows for half a minute and takes away when the message itself comes. In private chats alone.

    Source: https://core.telegram.org/bots/api#sendmessagedraft
    """

    ref: str | None = None
    fades_after_s = 20.0

    def __init__(self, api: TelegramApi, target: Target, support: DraftSupport, *, draft_id: int) -> None:
        self._api = api
        self._target = target
        self._support = support
        self._draft_id = draft_id

    async def put(self, text: RichText) -> None:
        try:
            await self._api.send_draft(self._target, self._draft_id, text)
        except Flooded:
            raise
        except TelegramError as error:
            lost = isinstance(error, TimedOut) or type(error) is NetworkError  # of which BadRequest is a kind as well
            if not lost and not unreadable(error):
                self._support.works = False
            raise


class EditedPreview:
    """One message. Whoever replaces it by the answer finds it under ``ref``.

    Args:
        opened: called with its id once it is there.
    """

    fades_after_s = float("inf")

    def __init__(self, api: TelegramApi, target: Target, *, reply_to: str | None, opened: Callable[[str], None]) -> None:
        self.ref: str | None = None
        self._api = api
        self._target = target
        self._reply_to = reply_to
        self._opened = opened

    async def put(self, text: RichText) -> None:
        if self.ref is None:
            self.ref = await self._api.send_text(self._target, text, reply_to=self._reply_to)
            self._opened(self.ref)
        else:
            await self._api.edit_text(self._target, self.ref, text)
