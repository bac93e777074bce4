"""A message as the calls that deliver it. The same message gives the same plan, so a delivery that broke off can go on."""

import asyncio
from collections.abc import Sequence

import msgspec

from channels.markup import RichText, render, split, units
from channels.telegram.files import NotSendable, ReadyFile, examine
from channels.telegram.limits import MAX_CAPTION, MAX_ENTITIES
from features.contracts.chat import OutboundFile, OutboundMessage

__all__ = ["AlbumStep", "FileStep", "LeftOutStep", "Step", "TextStep", "make_plan", "rendered_parts"]

_MAX_ALBUM = 10
_RENDERED_ASIDE_CHARS = 16_000


class TextStep(msgspec.Struct, frozen=True):
    part: RichText
    buttons: bool = False


class FileStep(msgspec.Struct, frozen=True):
    file: ReadyFile
    caption: RichText
    buttons: bool = False


class AlbumStep(msgspec.Struct, frozen=True):
    """2 to 10 files of one kind."""

    files: tuple[FileStep, ...]


class LeftOutStep(msgspec.Struct, frozen=True):
    """A file that cannot be sent, and why."""

    reason: str


Step = TextStep | FileStep | AlbumStep | LeftOutStep


async def make_plan(message: OutboundMessage) -> list[Step]:
    """Texts first, then files; the buttons stand under the last text, or under the last file where there is no text."""
    parts = await rendered_parts(message.text)
    steps: list[Step] = [TextStep(part, buttons=bool(message.buttons) and part is parts[-1]) for part in parts]
    examined = await asyncio.to_thread(lambda: [(file, examine(file)) for file in message.files]) if message.files else []
    with_buttons = bool(message.buttons) and not parts
    for position, (file, found) in enumerate(examined):
        steps.extend(_file_steps(file, found, buttons=with_buttons and position == len(examined) - 1))
    return _with_albums(steps)


async def rendered_parts(markdown: str) -> list[RichText]:
    """Rendered and cut; a long text is rendered beside the loop, so that other chats do not wait."""
    if len(markdown) > _RENDERED_ASIDE_CHARS:
        return await asyncio.to_thread(lambda: split(render(markdown)))
    return split(render(markdown))


def _file_steps(file: OutboundFile, found: ReadyFile | NotSendable, *, buttons: bool) -> list[Step]:
    caption = render(file.caption)
    texts: list[Step] = [TextStep(part) for part in split(caption)]
    if isinstance(found, NotSendable):
        return [LeftOutStep(found.reason), *texts]
    if units(caption.text) <= MAX_CAPTION and len(caption.spans) <= MAX_ENTITIES:
        return [FileStep(found, caption, buttons=buttons)]
    return [FileStep(found, RichText(""), buttons=buttons), *texts]


def _with_albums(steps: Sequence[Step]) -> list[Step]:
    """Files of one kind that follow each other go together."""
    joined: list[Step] = []
    group: list[FileStep] = []

    def close() -> None:
        joined.extend(group if len(group) < 2 else [AlbumStep(tuple(group))])
        group.clear()

    for step in steps:
        fits = isinstance(step, FileStep) and not step.buttons
        if group and not (fits and isinstance(step, FileStep) and step.file.photo == group[0].file.photo and len(group) < _MAX_ALBUM):
            close()
        if fits and isinstance(step, FileStep):
            group.append(step)
        else:
            joined.append(step)
    close()
    return joined
