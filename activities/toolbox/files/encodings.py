"""The text of a file's bytes, by what the bytes say of their encoding themselves."""

import codecs
import re
from typing import Final

_MARKS: Final = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_DECLARED: Final = re.compile(
    r"<meta[^>]{0,200}?charset\s*+=\s*+[\"']?\s*+([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE
)
_TEXT_CODEC: Final = re.compile(
    r"(utf-?(8|16|32)|iso(8859|2022)|cp|koi8|mac|gb|big5|shift_jis|euc|latin|ascii|tis)[a-z0-9_-]*"
)
_LOOKED_AT: Final = 8_192


class NotText(Exception):
    """The bytes are no text; the message says what they are."""


def decoded(content: bytes, *, whole: bool = True, html: bool = False) -> tuple[str, str]:
    """Return the text, and the name of the encoding that it was read by. Raises NotText.

    A byte order mark decides, else UTF-8 if the bytes are that, else what an HTML file declares.
    Any other text without zero bytes is read as Windows-1252, in which most Latin-1 reads the same;
    whoever calls this has to say so. Of a file that is not `whole` the last character may be cut.
    """
    for mark, name in _MARKS:
        if content.startswith(mark):
            text = _strict(content, name, whole)
            if text is None:
                raise NotText(f"begins as {name.removesuffix('-sig')} and is not")
            return text, name.removesuffix("-sig")
    if b"\0" in content[:_LOOKED_AT]:
        raise NotText("is not text")
    found = None
    if html:
        found = _DECLARED.search(content[:_LOOKED_AT].decode("latin-1"))
    for name in filter(None, ("utf-8", codec_of(found[1]) if found else "", "cp1252")):
        text = _strict(content, name, whole)
        if text is not None:
            return text, "windows-1252" if name == "cp1252" else name
    return content.decode("latin-1"), "latin-1"


def _strict(content: bytes, name: str, whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)().decode(content, final=whole)
    except UnicodeError:
        return None


def codec_of(declared: str) -> str:
    """Return the codec of an encoding that a document declares; empty for one that is
    unknown, or of no text.
    """
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return ""
    return name if _TEXT_CODEC.fullmatch(name) else ""
