"""The values in a call's arguments: JSON, Python literals, references, and plain words that nobody quoted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from workflows.plan.language.text import format_name
from workflows.plan.planner_format.tokens import Token

_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,299})\Z", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d{1,300}\.\d{0,300}|\.\d{1,300}|\d{1,300}(?=[eE]))(?:[eE][+-]?\d{1,4})?\Z", re.ASCII)
_NAME = re.compile(r"\s*([A-Za-z_][\w-]*)\s*\Z", re.ASCII)


class CallError(Exception):
    """Arguments that cannot be read; the message says which and what to write."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call was given, in order and by name."""

    ordered: list[Any] = field(default_factory=list)
    by_name: dict[str, Any] = field(default_factory=dict)


def read_arguments(tokens: Sequence[Token]) -> Arguments:
    """Return the arguments that the tokens of a call hold. Raises CallError for a name given twice."""
    given = Arguments()
    reader = _Reader(tokens)
    while not reader.done:
        name = reader.name()
        value = reader.value("")
        reader.skip(",")
        if name is None:
            given.ordered.append(value)
        elif name in given.by_name:
            raise CallError(f"{format_name(name)} is given twice")
        else:
            given.by_name[name] = value
    return given


class _Reader:
    """Walks over tokens. Brackets nest at most `tokens.MAX_DEPTH` deep, so recursion is bounded."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = [token for token in tokens if token.kind != "text" or token.source.strip()]
        self._at = 0
        self.skip("")

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def _is(self, kind: str, sources: str = "", ahead: int = 0) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at].kind == kind and self._tokens[at].source in sources

    def skip(self, mark: str) -> None:
        """Step over a mark if it stands here."""
        if mark and self._is("mark", mark):
            self._at += 1

    def name(self) -> str | None:
        """Step over `name =` or `"name":`, and return the name."""
        if self.done or not self._is("mark", "=:", 1) or self._is("mark", "=", 2):
            return None
        token = self._tokens[self._at]
        name = token.value if token.kind == "string" else None
        if token.kind == "text" and (found := _NAME.match(token.source)) and not self._is_address():
            name = found[1]
        self._at += 2 if name is not None else 0
        return name

    def _is_address(self) -> bool:
        """Whether `https` `:` `//host` stands here."""
        after = self._tokens[self._at + 2 : self._at + 3]
        return self._is("mark", ":", 1) and bool(after) and after[0].source.startswith("//")

    def value(self, ends: str) -> Any:
        """Step over a value, up to a comma, a closing bracket or one of `ends`, and return it."""
        start = self._at
        whole, value = self._quoted() if self._is_string() else self._bracketed()
        if whole and self._ended(ends):
            return value
        self._at = start
        return scalar(self._source(ends))

    def _is_string(self) -> bool:
        return not self.done and self._tokens[self._at].kind == "string"

    def _ended(self, ends: str) -> bool:
        return self.done or self._tokens[self._at].kind == "close" or self._is("mark", f",{ends}")

    def _quoted(self) -> tuple[bool, Any]:
        parts = []
        while self._is_string():
            parts.append(self._tokens[self._at].value)
            self._at += 1
        return True, "".join(parts)

    def _bracketed(self) -> tuple[bool, Any]:
        """Step over a list, tuple or object; (False, None) if none stands here or it is no such thing."""
        if not self._is("open", "([{"):
            return False, None
        opened = self._tokens[self._at].source
        self._at += 1
        entries: list[Any] = []
        fields: dict[str, Any] = {}
        commas = 0
        while not self.done and self._tokens[self._at].kind != "close":
            if opened == "{":
                key = self.value(":")
                if not self._is("mark", ":"):
                    return False, None
                self._at += 1
                fields[str(key)] = self.value("")
            else:
                entries.append(self.value(""))
            commas += self._is("mark", ",")
            self.skip(",")
        self._at += 1
        if opened == "(" and len(entries) == 1 and not commas:
            return True, entries[0]
        return True, fields if opened == "{" else entries

    def _source(self, ends: str) -> str:
        """Step over anything up to where a value ends, brackets balanced, and return how it was written."""
        parts: list[str] = []
        depth = 0
        while not self.done:
            token = self._tokens[self._at]
            if depth == 0 and self._ended(ends):
                break
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            parts.append(token.source)
            self._at += 1
        return "".join(parts).strip()


def scalar(text: str) -> Any:
    """Return the constant or number that unquoted text is, else the text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _WHOLE.match(text):
        return int(text)
    if _DECIMAL.match(text):
        number = float(text)
        return number if abs(number) != float("inf") else text
    return text
