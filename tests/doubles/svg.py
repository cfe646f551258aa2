"""What a drawing shows, read back from its text: boxes and texts in the units of the picture."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

LETTER = 9.65
_BOX = re.compile(r"M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z")
_MOVED = re.compile(r"translate\((-?\d+) (-?\d+)\)")
_SCALED = re.compile(r"scale\(([\d.]+)\)")


class Area(NamedTuple):
    """A rectangle with what stands in it."""

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    def meets(self, other: "Area") -> bool:
        """Whether they share more than an edge."""
        return (
            self.left < other.right - 0.5
            and other.left < self.right - 0.5
            and self.top < other.bottom - 0.5
            and other.top < self.bottom - 0.5
        )

    def holds(self, other: "Area") -> bool:
        """Whether the other lies inside, but for rounding."""
        return (
            self.left - 1 <= other.left
            and other.right <= self.right + 1
            and self.top - 1 <= other.top
            and other.bottom <= self.bottom + 1
        )


class Drawing:
    """An SVG text; raises ParseError when it is not well formed."""

    def __init__(self, text: str) -> None:
        self.root = ET.fromstring(re.sub(r" xmlns='[^']*'", "", text))
        _, _, width, height = map(float, self.root.attrib["viewBox"].split())
        self.page = Area(0, 0, width, height)
        self.boxes: list[Area] = []
        self.texts: list[Area] = []
        for element, x, y, scale in _placed(self.root, 0, 0, 1):
            if element.tag == "path":
                self.boxes += [
                    Area(x + int(left), y + int(top), x + int(left) + int(wide), y + int(top) + int(high))
                    for left, top, wide, high, _ in _BOX.findall(element.attrib["d"])
                ]
            elif element.tag == "text":
                self.texts.append(_text(element, x, y, scale))

    @property
    def titles(self) -> list[str]:
        """The tooltip of an element."""
        return [title.text or "" for title in self.root.iter("title")]

    def clashes(self) -> list[str]:
        """Return what overlaps, is cut by a box's edge, or leaves the page."""
        found = [f"boxes {one} {other}" for one, other in combinations(self.boxes, 2) if one.meets(other)]
        found += [f"texts {one} {other}" for one, other in combinations(self.texts, 2) if one.meets(other)]
        found += [f"cut {t} {b}" for t in self.texts for b in self.boxes if b.meets(t) and not b.holds(t)]
        return found + [f"outside {area}" for area in self.boxes + self.texts if not self.page.holds(area)]


def _placed(element: ET.Element, x: float, y: float, scale: float) -> Iterator[tuple[ET.Element, float, float, float]]:
    moved = _MOVED.match(element.get("transform", ""))
    scaled = _SCALED.match(element.get("transform", ""))
    if moved:
        x, y = x + int(moved[1]), y + int(moved[2])
    scale *= float(scaled[1]) if scaled else 1
    yield element, x, y, scale
    for child in element:
        if element.tag != "marker":
            yield from _placed(child, x, y, scale)


def _text(element: ET.Element, x: float, y: float, scale: float) -> Area:
    text = element.text or ""
    wide = float(element.get("textLength", len(text) * LETTER)) * scale
    left = x + float(element.get("x", 0)) * scale - (wide if element.get("text-anchor") == "end" else 0)
    base = y + float(element.get("y", 0)) * scale
    return Area(left, base - 12 * scale, left + wide, base + 4 * scale, text)
