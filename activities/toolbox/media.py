"""Images, PDFs and recordings in the results of tools: with their bytes, until the node
of the call keeps them.
"""

import base64
import binascii
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from sennit.activities.limits import MAX_MEDIA_BYTES
from sennit.workflows.plan.language.media import MEDIA_TYPES, MediaType

_BEGINNINGS: tuple[tuple[bytes, MediaType], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
_IN_RIFF: dict[bytes, MediaType] = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_FIELDS = {"media", "data", "name"}


class BadMedia(Exception):
    """A file, or a value, is no image, PDF or recording that models take, or it is too large."""


class MediaFile(BaseModel):
    """An image, a PDF or a recording that a tool returns, alone or anywhere in its result. `data` is base64.

    In the output of the node a value stands in its place that names its artifact; a model call takes it as `media`.
    """  # noqa: E501 - models read it

    model_config = ConfigDict(frozen=True)

    media: MediaType
    data: str
    name: str = ""

    @classmethod
    def of(cls, body: bytes, name: str = "") -> Self:
        """Return media of these bytes, whose type they say themselves. Raises BadMedia
        for what no model takes.
        """
        return cls(
            media=checked_type(body, name or "what the tool returns"),
            data=_encoded(body),
            name=name[:200],
        )


def type_of(body: bytes) -> MediaType | None:
    """Return the content type of media by how its bytes begin, whatever anybody says that it
    is. None for all else.
    """
    if body.startswith(b"RIFF"):
        return _IN_RIFF.get(body[8:12])
    for beginning, content_type in _BEGINNINGS:
        if body.startswith(beginning):
            return content_type
    return None


def check_size(size: int, shown: str) -> None:
    """Raise BadMedia for more bytes than media may have."""
    if size > MAX_MEDIA_BYTES:
        most = f"an image, a PDF or a recording may have {MAX_MEDIA_BYTES:,}"
        raise BadMedia(f"{shown} has {size:,} bytes; {most}: make it smaller")


def checked_type(body: bytes, shown: str) -> MediaType:
    """Return the content type of media that may be kept. Raises BadMedia."""
    check_size(len(body), shown)
    content_type = type_of(body)
    if content_type is None:
        raise BadMedia(
            f"{shown} is no image, PDF or audio that models take; they take "
            f"{', '.join(MEDIA_TYPES)}"
        )
    return content_type


def decoded(data: str, shown: str) -> bytes:
    """Return the bytes behind base64. Raises BadMedia."""
    check_size(len(data) * 3 // 4, shown)
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BadMedia(f"{shown} is not base64") from None


def is_file(value: Any) -> bool:
    """Whether a value in a tool's result has the fields of a MediaFile."""
    return isinstance(value, dict) and set(value) == _FIELDS and value["media"] in MEDIA_TYPES


def _encoded(body: bytes) -> str:
    return base64.b64encode(body).decode()
