"""Media: images, PDFs and recordings as values of a plan. A value names an artifact;
bytes never travel with it.
"""

from typing import Any, Final, Literal, get_args

from pydantic import Field, ValidationError

from sennit.workflows.plan.digests import DIGEST_CHARACTERS
from sennit.workflows.plan.language.validation_messages import Frozen

MediaType = Literal[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    "audio/wav",
    "audio/mpeg",
]
"""The content types that some model takes."""
MEDIA_TYPES: Final[tuple[MediaType, ...]] = get_args(MediaType)
MediaKind = Literal["image", "PDF", "audio"]
EXAMPLE = '{"media": "image/png", "artifact": DIGEST, "bytes": N}'


class Media(Frozen):
    """A value that stands for an image, a PDF or a recording. `artifact` is the digest of its bytes in the store."""  # noqa: E501 - models read it

    media: MediaType
    artifact: str = Field(pattern=rf"^[0-9a-f]{{{DIGEST_CHARACTERS}}}$")
    bytes: int = Field(strict=True, ge=1)
    name: str = Field(default="", max_length=200)

    @property
    def kind(self) -> MediaKind:
        """What people call it."""
        return kind_of(self.media)


def kind_of(content_type: str) -> MediaKind:
    """Return what people call a content type of media."""
    if content_type == "application/pdf":
        return "PDF"
    if content_type.startswith("audio/"):
        return "audio"
    return "image"


def as_media(value: Any) -> Media | None:
    """Return the media that a value stands for, None for any other value."""
    if not isinstance(value, dict) or "media" not in value:
        return None
    try:
        return Media.model_validate(value)
    except ValidationError:
        return None
