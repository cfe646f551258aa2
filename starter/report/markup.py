"""Markup from values that nobody may trust: models, tools and people have written most of a report.

Every value passes `escaped`. The page has no style attributes and no handlers, so that its
policy can forbid both.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

from sennit.workflows.plan.language.text import clean

Value = str | int | float
_VOID = ("input",)
"""Elements without content, which have no end."""


class Markup(str):
    """Text that is markup already, made by this module."""

    __slots__ = ()


EMPTY: Final = Markup()


def escaped(value: Value) -> Markup:
    """Return a value as text of a page: it cannot become markup, and has no control
    characters or direction marks.
    """
    if isinstance(value, Markup):
        return value
    return Markup(escape(clean(str(value)), quote=True))


def element(name: str, *content: Value, **attributes: Value | None) -> Markup:
    """Return an element. An attribute of None is left out. `_` in a name stands for `-`, and
    at its end for nothing.
    """
    parts = [name]
    for attribute, value in attributes.items():
        if value is not None:
            parts.append(f'{attribute.rstrip("_").replace("_", "-")}="{escaped(value)}"')
    start = f"<{' '.join(parts)}>"
    if name in _VOID:
        return Markup(start)
    return Markup(f"{start}{''.join(map(escaped, content))}</{name}>")


def table(names: Sequence[str], rows: Sequence[Markup], class_: str | None = None) -> Markup:
    """Return a table with these columns, in a box that it may be wider than."""
    cells = [element("th", name, scope="col") for name in names]
    head = element("thead", element("tr", *cells))
    body = element("tbody", *rows)
    return element("div", element("table", head, body, class_=class_), class_="table")


def joined(*parts: Value) -> Markup:
    """Return these one after the other."""
    return Markup("".join(map(escaped, parts)))


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, with a mark if it goes on."""
    if len(text) <= most:
        return text
    return text[: max(most - 1, 0)] + "…"
