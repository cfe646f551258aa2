"""Text from anywhere, made safe and short for people to read, and rid of what a model only thought. Nothing raises."""

import json
import re
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any

VALUE_CHARACTERS = 60
NAMES_CHARACTERS = 300
SENTENCE_CHARACTERS = 700
_COMPARED_NAMES = 1_000

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
_CONTROL = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_SHORT = r"\x1b[ -/]*[0-~]"
_ESCAPES = re.compile(f"{_STRING}|{_CONTROL}|{_SHORT}")
_RETURNS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff{DIRECTION_MARKS}]")
_THOUGHT = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_THOUGHT_BEGINS = re.compile(rf"\s*(?:<{_THOUGHT}>|\[THINK\]|◁think▷)", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"</{_THOUGHT}>|\[/THINK\]|◁/think▷", re.IGNORECASE)


def clean(text: str) -> str:
    """Return `text` without terminal escapes, control characters and direction marks. Line breaks and tabs stay."""
    if text.isprintable():
        return text
    return _HIDDEN.sub("", _RETURNS.sub("\n", _ESCAPES.sub("", text)))


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` cleaned, printable and on one line, cut to `limit` characters with an ellipsis."""
    start = text if limit is None else text[: 4 * limit]
    if not start.isprintable():
        start = "".join(char for char in clean(start) if char.isprintable() or char.isspace())
    line = " ".join(start.split())
    if limit is None or (len(line) <= limit and len(text) <= 4 * limit):
        return line
    return line[: limit - 1] + "…"


def printable(text: str, limit: int = SENTENCE_CHARACTERS) -> str:
    """Return `text` cut to `limit` characters, with each character that does not print written as an escape."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def format_value(value: Any) -> str:
    """Return a value as JSON writes it, short and on one line; of lists and objects only what kind they are."""
    if isinstance(value, str):
        return '"' + printable(value, VALUE_CHARACTERS).replace('"', '\\"') + '"'
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 200 else f"a number of {value.bit_length()} bits"
    if isinstance(value, dict):
        return f"an object with {format_names(value, 3)}" if value else "an empty object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return printable(type(value).__name__, VALUE_CHARACTERS)


def format_name(name: str) -> str:
    return f"`{printable(name, VALUE_CHARACTERS)}`"


def format_names(names: Iterable[Any], most: int = 20, form: Callable[[Any], str] = str) -> str:
    """Return names as `a, b, c`, at most the first `most`; `none` when there are none. `form` gives each its text."""
    every = names if isinstance(names, Collection) else list(names)
    text = ", ".join(printable(form(name), VALUE_CHARACTERS) for name in islice(every, most))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (printable(text, NAMES_CHARACTERS) or "none") + more


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return `; did you mean ...?` with the most similar name, or nothing. Compares 1,000 names at most."""
    wanted = name[:80]
    candidates: Collection[str] = names
    if len(names) > _COMPARED_NAMES:
        candidates = [other for other in names if abs(len(other) - len(wanted)) <= 1][:_COMPARED_NAMES]
    found = get_close_matches(wanted, candidates, 1)
    return f"; did you mean {format_name(found[0])}?" if found else ""


def nearest_or_known(name: str, names: Collection[str]) -> str:
    """Return `; did you mean ...?` with the most similar name, else `; known: ...`."""
    return did_you_mean(name, names) or f"; known: {format_names(names)}"


class ThoughtFilter:
    """Takes a text row by row, each with its line end, and gives back what is no thought.

    A thought begins where a row does, so that a tag in a sentence is text, and ends at its closing tag. One that is
    never closed takes the rest of the text. Some servers leave out the opening tag: a closing tag without it, at the
    beginning or end of a row, makes all that came before a thought.
    """

    def __init__(self) -> None:
        self.open = False

    def take(self, row: str) -> tuple[str, bool]:
        """Return what of the row is no thought, and whether all rows before turn out to be one."""
        was_thought = False
        found = None if self.open else _THOUGHT_ENDS.search(row)
        if (
            found
            and not _THOUGHT_BEGINS.match(row)
            and (not row[found.end() :].strip() or not row[: found.start()].strip())
        ):
            row, was_thought = row[found.end() :], True
        at = 0
        while self.open or _THOUGHT_BEGINS.match(row, at):
            closed = _THOUGHT_ENDS.search(row, at)
            self.open = closed is None
            if closed is None:
                return "", was_thought
            at = closed.end()
        return row[at:], was_thought


def without_thoughts(text: str) -> str:
    """Return the text of a whole reply without the model's thoughts."""
    thoughts, kept = ThoughtFilter(), list[str]()
    for row in text.splitlines(keepends=True):
        rest, was_thought = thoughts.take(row)
        if was_thought:
            kept.clear()
        kept.append(rest)
    return "".join(kept)
