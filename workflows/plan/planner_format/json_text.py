"""JSON in what a model wrote: bare, in a code fence, or with words around it."""

import json
import re
from typing import Any

from workflows.plan.language.json_checks import first_violation
from workflows.plan.language.problems import place_of

_BEGINS = re.compile(r"^[^\S\n]*[{\[]", re.MULTILINE)


class NoJson(Exception):
    """There is no JSON, or none that can be read; the message says where it breaks."""


def begins_json(row: str) -> bool:
    """Whether JSON that goes on over rows may begin with this row: `{`, or `[` with nothing or an object behind it."""
    text = row.lstrip()
    return text.startswith("{") or (text.startswith("[") and text[1:].lstrip()[:1] in ("", "{"))


def extract_json(text: str) -> tuple[Any, str]:
    """Return (value, text behind it) of the first JSON that begins a row. Raises NoJson; nothing else."""
    found = _BEGINS.search(text)
    if found is None:
        raise NoJson("there is no JSON in it")
    try:
        value, end = json.JSONDecoder().raw_decode(text, found.end() - 1)
    except json.JSONDecodeError as error:
        raise NoJson(f"the JSON breaks at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise NoJson("the JSON holds a number or a nesting that is too large") from None
    wrong = first_violation(value)
    if wrong is not None:
        raise NoJson(f"{place_of(wrong[0]) or 'the JSON'} {wrong[1]}")
    return value, text[end:].strip().removeprefix("```").strip()
