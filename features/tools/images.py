"""Images, small and sound enough for a model."""

import base64
import io
from typing import TYPE_CHECKING

import msgspec

from features.contracts.errors import ModelMustAct
from features.contracts.messages import ImageBlock

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MAX_IMAGE_BYTES", "FittedImage", "fit_image", "image_type"]

_MAX_SIDE = 2000
_MAX_BASE64_BYTES = int(4.5 * 1024 * 1024)
MAX_IMAGE_BYTES = 50 * 1024 * 1024
_MAX_PIXELS = 89_000_000
"""Beyond it a small file may unpack to gigabytes."""
_SCALES = (1.0, 0.75, 0.5, 0.35, 0.25)
_GOOD_QUALITY = 85
_LOWER_QUALITIES = (70, 55, 40)
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}


class FittedImage(msgspec.Struct, frozen=True, kw_only=True):
    """``note`` tells a model how to map coordinates back when the image was made smaller."""

    block: ImageBlock
    note: str | None = None


def image_type(head: bytes) -> str | None:
    """The MIME type of an image that models take, by its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def fit_image(data: bytes, mime_type: str, name: str) -> FittedImage:
    """Decode the image, so that a broken one never enters a conversation, and make it smaller where a service would refuse it.

    Raises:
        ModelMustAct: it cannot be decoded or is beyond every bound.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data), formats=[_FORMATS[mime_type]]) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                raise ModelMustAct(f"{name} has {opened.width}x{opened.height} pixels, too many pixels to decode; make it smaller first")
            opened.load()
            if max(opened.size) <= _MAX_SIDE and _base64_size(len(data)) <= _MAX_BASE64_BYTES:
                return FittedImage(block=ImageBlock(data=base64.b64encode(data).decode("ascii"), mime_type=mime_type))
            image = ImageOps.exif_transpose(opened)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as problem:
        raise ModelMustAct(f"{name} has too many pixels to decode ({problem}); make it smaller first") from problem
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError) as problem:
        raise ModelMustAct(f"{name} begins like an image ({mime_type}) and cannot be decoded: {problem}") from problem
    return _smaller(image, name)


def _smaller(image: "Image", name: str) -> FittedImage:
    width, height = image.size
    base = min(1.0, _MAX_SIDE / max(width, height))
    for scale in _SCALES:
        size = (max(1, round(width * base * scale)), max(1, round(height * base * scale)))
        encoded = _encoded(image.resize(size))
        if encoded is None:
            continue
        data, mime_type = encoded
        factor = width / size[0]
        note = (
            f"[Image: original {width}x{height}, displayed at {size[0]}x{size[1]}. "
            f"Multiply coordinates by {factor:.2f} to map to original image.]"
        )
        return FittedImage(block=ImageBlock(data=base64.b64encode(data).decode("ascii"), mime_type=mime_type), note=note)
    raise ModelMustAct(f"{name} cannot be made small enough to be shown")


def _encoded(image: "Image") -> tuple[bytes, str] | None:
    """The smaller of PNG and good JPEG; where neither fits, JPEG at the best quality that does."""
    flat = image.convert("RGB")
    png = _saved(image if image.mode in ("RGB", "L") else image.convert("RGBA"), "PNG"), "image/png"
    jpeg = _saved(flat, "JPEG", _GOOD_QUALITY), "image/jpeg"
    for candidate in sorted((png, jpeg), key=lambda pair: len(pair[0])):
        if _base64_size(len(candidate[0])) <= _MAX_BASE64_BYTES:
            return candidate
    for quality in _LOWER_QUALITIES:
        data = _saved(flat, "JPEG", quality)
        if _base64_size(len(data)) <= _MAX_BASE64_BYTES:
            return data, "image/jpeg"
    return None


def _saved(image: "Image", format: str, quality: int | None = None) -> bytes:
    target = io.BytesIO()
    image.save(target, format=format, **({} if quality is None else {"quality": quality}))
    return target.getvalue()


def _base64_size(size: int) -> int:
    return (size + 2) // 3 * 4
