"""Keeps credentials out of what a worker says: its log, and the errors that go into the history of runs."""

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache

MASK = "[redacted]"

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY)$|PASSWORD|PASSWD", re.IGNORECASE
)
_LEAST = 6  # shorter values are words like "true" or "test", and masking those would spoil every line
_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_HEADER = re.compile(
    r"(?P<name>authorization|(?<!(?-i:[A-Z0-9])_)api[-_]key)"  # behind OPENAI_API_KEY may stand what is wrong with it
    rf"(?P<between>{_COLOUR}[\\\"'\s]*{_COLOUR}[:=,]\s*{_COLOUR}(?:b(?=[\\\"']))?[\\\"']*{_COLOUR})"
    r"(?P<scheme>(?:bearer|basic|digest|token)\s+)?"
    r"[^\s\\\"',;)\]}\x1b]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<scheme>\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)

_URL = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@?#]{0,200}:)(?P<password>[^\s/@]{1,500})(?=@)", re.IGNORECASE
)


class Redactor:
    """Masks secrets in text: the values of variables that look like keys, the passwords of those that are URLs, and
    credentials in headers and URLs.

    A value is found as it is and as JSON or Python would quote it. Values under 6 characters are left alone.
    """

    __slots__ = ("_values",)

    def __init__(self, env: Mapping[str, str]) -> None:
        forms: set[str] = set()
        for name, value in env.items():
            if _SECRET_NAME.search(name) and len(value.strip()) >= _LEAST:
                forms.update(_spellings(value.strip()))
            for url in _URL.finditer(value):
                forms.update(_spellings(url["password"]) if len(url["password"]) >= _LEAST else ())
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def clean(self, text: str) -> str:
        """Return `text` with every secret replaced by a mask."""
        if self._values is not None:
            text = self._values.sub(MASK, text)
        text = _URL.sub(rf"\g<before>{MASK}", text)
        text = _HEADER.sub(rf"\g<name>\g<between>{MASK}", text)
        return _BEARER.sub(rf"\g<scheme>{MASK}", text)


def _spellings(value: str) -> tuple[str, ...]:
    quoted = json.dumps(value)[1:-1]
    return value, quoted, json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1], json.dumps(quoted)[1:-1]


def redact(text: str) -> str:
    """Return `text` without the secrets that this process has in its environment."""
    return _redactor(tuple(os.environ.items())).clean(text)


@lru_cache(maxsize=1)
def _redactor(env: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(env))
