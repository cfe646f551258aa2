"""Which models take which media, as far as that is known before a call, and about
how much they read of it.
"""

import re

from sennit.activities.providers.errors import MediaRefused
from sennit.activities.providers.model import MediaPart, ModelRequest
from sennit.workflows.plan.language.media import Media, MediaKind
from sennit.workflows.plan.language.text import format_names

IMAGE_TOKENS = 1_600
"""The most that Anthropic counts of an image; OpenAI counts about as much of one in full detail."""
PAGE_TOKENS = 3_000
"""The most that Anthropic says a page of a PDF takes: it is read as text, and seen as an image."""
_BYTES_A_PAGE = 100_000
_BYTES_A_SOUND_TOKEN = 1_600
"""OpenAI reads ten tokens a second, and a second of speech has 16,000 bytes as MP3. Of
WAV too many are counted.
"""

_KINDS: tuple[MediaKind, ...] = ("image", "PDF", "audio")
_NAMES = r"(?:image|vision|visual|multi-?modal|audio|pdf|file|document|content type)"
_LACKS = (
    r"(?:support|unknown variant|at most 0|\bnot an?\b|invalid type|expected .?(?:a )?(?:text"
    r"|string)|only text)"
)
_NO_MEDIA = re.compile(rf"{_NAMES}.{{0,80}}{_LACKS}|{_LACKS}.{{0,80}}{_NAMES}")
"""What servers say, in small letters, of a model that takes no media."""
_OF_FILE = re.compile(
    r"\bformats?\b|\buploaded\b|\b(?:mime|media)[ _-]?types?\b|corrupt|damaged|\bbroken\b"
    r"|\bempty\b|encrypt|password"
    r"|\b(?:could|can|can't|couldn't)(?: ?not)? (?:be )?(?:process|decode|read|open|load|parse"
    r"|identif)"
    r"|\bexceed|\btoo (?:large|small|big|many|long)|\bcorrect (?:image|file)|\bvalid (?:image|file"
    r"|pdf|audio)"
)
"""The same of one file: another of its kind may be taken."""
_OF_MODEL = re.compile(
    r"\bmodels?\b|\binputs?\b|modalit|unknown variant|at most 0|expected .?(?:a )?(?:text|string)"
    r"|only text"
)
_WORDS_OF_KIND: dict[MediaKind, re.Pattern[str]] = {
    "image": re.compile(r"image|vision|visual|multi-?modal"),
    "PDF": re.compile(r"pdf|\bfiles?\b|document|multi-?modal"),
    "audio": re.compile(r"audio|multi-?modal"),
}
_TEXT_ALONE = re.compile(
    r"openai:(gpt-3\.5|gpt-4(-\d{4})?\Z|o1-mini|o3-mini|deepseek-(chat|reasoner)\Z)"
)
"""Models of OpenAI's format that are known to read nothing but text; docs/models.md has the
sources. Of newer ones of DeepSeek, some read images.
"""


def lacks(model: str, kind: MediaKind) -> bool:
    """Whether a model is known to take no media of a kind. Of most models
    only their server knows.
    """
    provider = model.partition(":")[0]
    if provider == "offline" or _TEXT_ALONE.match(model):
        return True
    return provider == "anthropic" and kind == "audio"


def lacks_all(model: str) -> bool:
    """Whether a model is known to read nothing but text."""
    return all(lacks(model, kind) for kind in _KINDS)


def check_taken(request: ModelRequest) -> None:
    """Raise MediaRefused, before anything is sent, if the request's model is known
    not to take its media.
    """
    for media in request.media:  # what a tool has returned is named instead
        if lacks(request.model, media.kind):
            raise MediaRefused(f"{request.model} takes no {media.kind}: {why_not(request.model)}")


def why_not(model: str) -> str:
    """Return why a model takes no media, and what to do, as the end of a sentence."""
    reads = (
        "the rules read text alone" if model.startswith("offline") else "it is known to take none"
    )
    return f"{reads}; choose another one with `model` or --model"


def refused_media(request: ModelRequest, refusal: str, text: str) -> MediaRefused | None:
    """Return the error of a call that a server refuses because its model takes no such media;
    `text` is its answer in small letters. None where that is not what it says.
    """
    if not request.shown or not _NO_MEDIA.search(text):
        return None
    kinds = dict.fromkeys(media.kind for media in request.shown)
    refused = MediaRefused(f"{request.model} takes no {format_names(kinds)}: {refusal}")
    # Only what is said of the model is worth to be remembered: a file may be broken.
    if _OF_MODEL.search(text) and not _OF_FILE.search(text):
        refused.kinds = tuple(kind for kind in kinds if _WORDS_OF_KIND[kind].search(text))
    return refused


def part_of(media: Media, data: str) -> MediaPart:
    """Return media as a request has it; `data` is its bytes in base64."""
    if media.kind == "image":
        tokens = IMAGE_TOKENS
    elif media.kind == "PDF":
        tokens = PAGE_TOKENS * (1 + media.bytes // _BYTES_A_PAGE)
    else:
        tokens = 1 + media.bytes // _BYTES_A_SOUND_TOKEN
    return MediaPart(media.media, data, tokens, media.name, media.model_dump(mode="json"))
