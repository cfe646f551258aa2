"""HTML to plain text, in time linear in its length whatever the page holds."""

import re
from html.parser import HTMLParser
from typing import Final

_BLOCK_TAGS: Final = (
    "address article aside blockquote body br caption center dd details div dl dt figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre "
    "section summary table tbody tfoot thead title tr ul"
)
_BLOCKS: Final = frozenset(_BLOCK_TAGS.split())
_CELLS: Final = frozenset({"td", "th"})
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_UNREAD: Final = frozenset(
    {"script", "style", "template", "noscript", "svg", "iframe", "textarea", "select"}
)
_UNREAD_START: Final = re.compile(r"<(?:!--|[!?]|(script|style)(?=[\s/>]))", re.IGNORECASE)
_UNREAD_END: Final = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}


def html_to_text(html: str) -> tuple[str, str]:
    """Return title and text: a blank line between blocks, `#` before headings,
    scripts and styles dropped.
    """
    page = _Page()
    # close() is quadratic on hostile pages; a last tag makes feed() hand over all text instead.
    page.feed(_without_unread(html) + "\n<br>")
    return page.title(), page.text()


def _without_unread(html: str) -> str:
    """Cut comments, declarations, scripts and styles: the constructs on which
    html.parser is slow or raises.
    """
    kept: list[str] = []
    position = 0
    while found := _UNREAD_START.search(html, position):
        kept.append(html[position : found.start()])
        end = _end_of_unread(html, found)
        if end is None:
            return "".join(kept)
        position = end
    kept.append(html[position:])
    return "".join(kept)


def _end_of_unread(html: str, start: re.Match[str]) -> int | None:
    position = start.end()
    mark = ">"
    if start[1]:
        closing = _UNREAD_END[start[1].lower()].search(html, position)
        if closing is None:
            return None
        position = closing.end()
    elif start[0] == "<!--":
        mark = "-->"
        position -= 2  # a comment may close with its own opening dashes: <!-->
    end = html.find(mark, position)
    if end < 0:
        return None
    return end + len(mark)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._blocks: list[str] = []
        self._line: list[str] = []
        self._prefix = ""
        self._unread = ""
        self._unread_depth = 0
        self._in_title = False
        self._title: list[str] = []
        self._first_heading = ""

    def handle_starttag(self, tag: str, _attributes: list[tuple[str, str | None]]) -> None:
        if self._unread:
            self._unread_depth += tag == self._unread
        elif tag in _UNREAD:
            self._unread, self._unread_depth = tag, 1
        elif tag in _CELLS:
            self._line.append(" ")
        elif tag in _BLOCKS:
            self._end_block()
            self._in_title = tag == "title"
            self._prefix = _HEADINGS.get(tag, "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in _UNREAD:
            self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        if self._unread:
            self._unread_depth -= tag == self._unread
            if not self._unread_depth:
                self._unread = ""
        elif tag in _BLOCKS:
            self._end_block()

    def handle_data(self, data: str) -> None:
        if not self._unread:
            (self._title if self._in_title else self._line).append(data)

    def title(self) -> str:
        return " ".join("".join(self._title).split()) or self._first_heading

    def text(self) -> str:
        self._end_block()
        return "\n\n".join(self._blocks)

    def _end_block(self) -> None:
        line = " ".join("".join(self._line).split())
        if line:
            if self._prefix and not self._first_heading:
                self._first_heading = line
            self._blocks.append(self._prefix + line)
        self._line.clear()
        self._prefix = ""
        self._in_title = False
