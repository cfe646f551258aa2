"""The text of a PDF, by the package that the extra `pdf` brings."""

import io
import json
import logging
import math
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sennit.activities.limits import (
    MAX_KEPT_PDF_TEXTS_BYTES,
    MAX_PDF_BYTES,
    MAX_PDF_CHARACTERS,
    MAX_PDF_PAGES,
)
from sennit.activities.toolbox.files.encodings import NotText

_BEGINNING: Final = b"%PDF-"
_SECONDS: Final = 15.0
_UNUSED_SECONDS: Final = 30 * 86_400

# Of a broken file it says more than anybody reads.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def is_pdf(content: bytes) -> bool:
    return content.startswith(_BEGINNING)


def can_read_pdf() -> bool:
    """Whether the package is installed."""
    return find_spec("pypdf") is not None


class PdfTexts:
    """Texts of PDFs, kept in a folder: to read one takes seconds, and an index is built again at
    each change of any document. A text that is not used for 30 days goes, and so do those used
    longest ago if all take too much.
    """

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        remove_unused(folder.iterdir(), MAX_KEPT_PDF_TEXTS_BYTES, _UNUSED_SECONDS)

    def of(self, content: bytes) -> str:
        """Return what `pdf_text` does, or raise the NotText that it did. Raises OSError."""
        if not can_read_pdf():
            return pdf_text(content)
        kept = self._folder / f"{blake2b(content, digest_size=16).hexdigest()}.json"
        try:
            found: dict[str, str] = json.loads(kept.read_bytes())
            kept.touch()
        except (OSError, ValueError):
            found = _found(content)
            part = kept.with_suffix(f".{secrets.token_hex(4)}")
            part.write_text(json.dumps(found))
            part.replace(kept)
        if "text" not in found:
            raise NotText(found["problem"])
        return found["text"]


def remove_unused(paths: Iterable[Path], max_bytes: int, seconds: float = math.inf) -> None:
    """Remove files that were not used for so many seconds, and of the others those used longest ago
    that are over a bound in bytes. The one used last stays. Several processes may do it at once.
    """
    aged = list[tuple[float, int, Path]]()
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            aged.append((status.st_mtime, status.st_size, path))
    aged.sort(reverse=True)
    total = 0
    for place, (used, size, path) in enumerate(aged):
        total += size
        if place > 0 and (total > max_bytes or time.time() - used > seconds):
            with suppress(OSError):
                path.unlink()


def _found(content: bytes) -> dict[str, str]:
    try:
        return {"text": pdf_text(content)}
    except NotText as problem:
        return {"problem": str(problem)}


def pdf_text(content: bytes) -> str:
    """Return the text of all pages, with an empty line between them. Raises NotText
    saying why there is none.
    """
    if not can_read_pdf():
        raise NotText("is a PDF; to read it, install sennit[pdf] where the workers run")
    if len(content) > MAX_PDF_BYTES:
        raise NotText(f"is a PDF of more than {MAX_PDF_BYTES >> 20} MB")
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    deadline, pages = time.monotonic() + _SECONDS, list[str]()
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise NotText("is a PDF with a password")
        if len(reader.pages) > MAX_PDF_PAGES:
            raise NotText(f"is a PDF of more than {MAX_PDF_PAGES:,} pages")
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            if time.monotonic() > deadline or sum(map(len, pages)) > MAX_PDF_CHARACTERS:
                raise NotText("is a PDF that takes too long to read")
    except (
        PyPdfError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise NotText(f"is a PDF that cannot be read: {type(error).__name__}") from None
    written = [page for page in pages if page]
    text = "\n\n".join(written)
    if not text:
        raise NotText("is a PDF without text, perhaps of scanned pages")
    return text
