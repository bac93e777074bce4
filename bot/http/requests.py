"""The shapes of request bodies."""

import base64
import binascii
from typing import Annotated

import msgspec
from starlette.requests import Request

from bot.http.answers import ApiError
from bot.http.host_view import Upload

__all__ = [
    "Approval",
    "Login",
    "ModelChoice",
    "PostedFile",
    "PostedMessage",
    "Revocation",
    "SentMessage",
    "SessionCheck",
    "SessionImport",
    "asked_number",
    "uploads",
]

_IMAGE_KINDS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_MAX_FILES = 20

Text = Annotated[str, msgspec.Meta(max_length=1_000_000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class PostedImage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``data`` is base64."""

    data: str
    mime_type: str
    name: str = ""


class PostedFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``data`` is base64; ``name`` is a label and never a path."""

    name: Name
    data: str
    mime_type: str | None = None


class PostedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner says. An image is a data URL or ``{data, mimeType}``. Text or a file must be there.

    ``attended`` false says that nobody is there to answer questions; whatever would be asked is refused at once.
    """

    text: Text = ""
    images: Annotated[list[str | PostedImage], msgspec.Meta(max_length=_MAX_FILES)] = []
    files: Annotated[list[PostedFile], msgspec.Meta(max_length=_MAX_FILES)] = []
    attended: bool = True


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What is delivered into the chat as the host's own. Text or a file must be there."""

    text: Text = ""
    files: Annotated[list[PostedFile], msgspec.Meta(max_length=_MAX_FILES)] = []


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """``model`` is ``provider/id``."""

    model: Name


class SessionImport(msgspec.Struct, frozen=True, kw_only=True):
    """A session file for a chat; ``data`` is base64."""

    chat: Name
    data: str


class SessionCheck(msgspec.Struct, frozen=True, kw_only=True):
    repair: bool = True


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A one-time link's secret, or the token itself."""

    secret: str | None = None
    token: str | None = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """``owner`` makes the person one."""

    code: Name
    owner: bool = False


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    id: Name


def asked_number(request: Request, name: str, *, default: int, most: int) -> int:
    """A whole number of the query, from 1 to ``most``."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 9:
        raise ApiError(400, f"{name} is {text!r}; it is a whole number.")
    if not 1 <= int(text) <= most:
        raise ApiError(400, f"{name} is {text}; it is 1 to {most}.")
    return int(text)


def uploads(message: PostedMessage | SentMessage) -> list[Upload]:
    """The files of a message, decoded.

    Raises:
        ApiError: 400 when one is not what it says it is, or when there is neither text nor a file.
    """
    images = message.images if isinstance(message, PostedMessage) else []
    found = [_image(image, number) for number, image in enumerate(images, 1)]
    found += [Upload(name=file.name, mime_type=file.mime_type, data=_bytes(file.data, file.name)) for file in message.files]
    if not message.text.strip() and not found:
        raise ApiError(400, "The message is empty: give it a text, an image or a file.")
    return found


def _image(image: str | PostedImage, number: int) -> Upload:
    import filetype  # type: ignore[import-untyped]

    if isinstance(image, PostedImage):
        data, label = _bytes(image.data, f"image {number}"), image.name
    else:
        head, comma, encoded = image.partition(",")
        if not comma or not head.startswith("data:") or not head.endswith(";base64"):
            raise ApiError(400, f"Image {number} is no data URL; write it as 'data:image/png;base64,...' or as {{data, mimeType}}.")
        data, label = _bytes(encoded, f"image {number}"), ""
    mime_type = filetype.guess_mime(data)  # what it is counts, not what it is called
    if mime_type not in _IMAGE_KINDS:
        raise ApiError(400, f"Image {number} is not an image in PNG, JPEG, GIF or WebP form. Send other things as files.")
    return Upload(name=label or f"image-{number}.{_IMAGE_KINDS[mime_type]}", mime_type=mime_type, data=data)


def _bytes(encoded: str, what: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(400, f"The data of {what} is not base64.") from None
