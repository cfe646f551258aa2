"""The operator's standing decisions about writes: a TOML file of rules, the first of which that
matches a call counts.

```toml
[[rule]]
name = "drafts"
tool = "write"
decision = "allow"
equal = {mode = "create"}
below = {path = "drafts"}
```

A rule sees the tool and its arguments, and nothing that a caller says of itself: who may start runs
can name any tenant. A test that cannot tell is in doubt, and doubt never lets a write through: it
fails the tests of a rule that allows, and passes those of a rule that asks or refuses.
"""

import ipaddress
import os
import posixpath
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from sennit.activities.limits import MAX_APPROVAL_RULES, MAX_APPROVAL_RULES_BYTES
from sennit.activities.toolbox.definition import Tool
from sennit.activities.toolbox.errors import ToolSetupError
from sennit.activities.toolbox.registry import Registry, absence_of
from sennit.workflows.plan.language.problems import no_such_tool
from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.language.validation_messages import first_error

Decision = Literal["allow", "ask", "refuse"]

EVERY_TOOL: Final = "*"
_HEADER: Final = re.compile(r"\s*\[\[\s*rule\s*\]\]")
_URL: Final = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::"
    r"(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?#][!-~]*)?",
    re.IGNORECASE,
)
"""URLs that every library reads alike: no user, no backslash, no space, nothing but ASCII.
All others are in doubt.
"""
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_CALLER: Final = ("tenant", "caller", "namespace", "user", "run")
"""Words that look like a test of who calls, which no rule has."""


class Answer(Enum):
    """Whether an argument passes a test."""

    YES = "yes"
    NO = "no"
    DOUBT = "doubt"


class Rule(BaseModel):
    """One rule. `tool` is the name of a tool that writes, or `*` for all of them. Each argument
    that is named must pass its test: `equal` is a value, `below` the folder in which a path lies,
    `origin` the origin of a URL.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    decision: Decision
    equal: dict[str, JsonValue] = Field(default_factory=dict)
    below: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    origin: dict[str, str] = Field(default_factory=dict)

    @field_validator("below")
    @classmethod
    def _roots(cls, roots: dict[str, str]) -> dict[str, str]:
        for argument, root in roots.items():
            if posixpath.normpath(root) != root.rstrip("/") and root != "/":
                raise ValueError(
                    f"{argument}: {root!r} is not written out; write {posixpath.normpath(root)!r}"
                )
            if root.startswith(("~", "..")):
                raise ValueError(f"{argument}: {root!r} must be absolute, or relative without `..`")
        return roots

    @field_validator("origin")
    @classmethod
    def _origins(cls, origins: dict[str, str]) -> dict[str, str]:
        for argument, text in origins.items():
            parts = _URL.fullmatch(text)
            origin = origin_of(text)
            if parts is None or parts["rest"] or origin is None or origin[2] is None:
                raise ValueError(
                    f"{argument}: {text!r} is no origin; write it as https://api.example.com"
                )
        return origins

    @property
    def arguments(self) -> list[str]:
        """The arguments that it tests."""
        return [*self.equal, *self.below, *self.origin]

    def matches(self, tool: str, readings: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the rule decides about a call. `readings` are its arguments as they are written,
        and as the tool takes them.
        """
        if self.tool not in (tool, EVERY_TOOL):
            return False
        answers = list(self._answers(readings))
        if self.decision == "allow":
            return all(answer is Answer.YES for answer in answers)
        return all(answer is not Answer.NO for answer in answers)

    def _answers(self, readings: Sequence[Mapping[str, Any]]) -> Iterable[Answer]:
        for argument, test in self._tests():
            values = _values(argument, readings)
            yield _agreed(map(test, values))

    def _tests(self) -> Iterator[tuple[str, Callable[[Any], Answer]]]:
        """Yield each argument that it tests, with the test."""
        for argument, wanted in self.equal.items():
            yield argument, partial(_equal, wanted=wanted)
        for argument, root in self.below.items():
            yield argument, partial(_is_below, root=root)
        for argument, origin in self.origin.items():
            yield argument, partial(_has_origin, origin=origin)

    def described(self) -> str:
        """Return the rule on one line, as `sennit tools` shows it."""
        tests = [f"{argument} = {wanted!r}" for argument, wanted in self.equal.items()]
        tests += [f"{argument} below {root}" for argument, root in self.below.items()]
        tests += [f"{argument} at {origin}" for argument, origin in self.origin.items()]
        described = f"{self.name}: {self.decision} {self.tool}"
        if tests:
            described += f" where {' and '.join(tests)}"
        return described


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """The rules of a worker, in the order of their file."""

    rules: tuple[Rule, ...] = ()

    def first(self, tool: Tool, written: Mapping[str, Any]) -> Rule | None:
        """Return the rule that decides about a call with the arguments as they are
        `written`, None if none does.

        Raises ToolArgumentError if they do not fit the tool.
        """
        readings = [written, _taken(tool, written)]
        for rule in self.rules:
            if rule.matches(tool.name, readings):
                return rule
        return None


def read_rules(
    path: Path, registry: Registry, *, knows_all: bool, always_asks: bool
) -> ApprovalRules:
    """Return the rules of a file. Raises ToolSetupError with the file, the line and the nearest
    name for anything that could keep a rule from deciding about what it was written for.

    `knows_all` says that the registry has all tools of these settings: a worker of another role
    knows fewer. `always_asks` says that the operator wants every write to wait for a person.
    """
    text = _read(path)
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ToolSetupError(f"{path}: {error}") from None
    lines = _Lines(path, text)
    lines.check_top(body)
    rules: list[Rule] = []
    for index, table in enumerate(body["rule"]):
        rule = _parsed(table, lines, index)
        if any(rule.name == earlier.name for earlier in rules):
            raise lines.problem(index, "name", f"there are two rules with the name {rule.name!r}")
        if rule.decision == "allow" and always_asks:
            ceiling = "SENNIT_APPROVAL=writes says that every write waits for a person"
            raise lines.problem(
                index, "decision", f"{ceiling}, so no rule can allow one; leave out one of the two"
            )
        _check_tool(rule, registry, lines, index, knows_all=knows_all)
        rules.append(rule)
    return ApprovalRules(tuple(rules))


def _read(path: Path) -> str:
    try:
        body = path.read_bytes()
        if len(body) > MAX_APPROVAL_RULES_BYTES:
            raise ToolSetupError(f"{path} has over {MAX_APPROVAL_RULES_BYTES:,} bytes")
        return body.decode()
    except OSError as error:
        raise ToolSetupError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise ToolSetupError(f"{path} is no UTF-8") from None


class _Lines:
    """Where in the file a rule stands. TOML readers do not say it, so it is found only
    where that is certain.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._headers = [number for number, line in enumerate(self._lines) if _HEADER.match(line)]

    def check_top(self, body: Mapping[str, Any]) -> None:
        """Raise ToolSetupError unless the file is a list of rules."""
        for name in body:
            if name != "rule":
                raise self._named(
                    name, f"there is no {format_name(name)} here{nearest_or_known(name, ['rule'])}"
                )
        rules = body.get("rule")
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise ToolSetupError(
                f"{self._path}: it has no rule; a rule begins with the line [[rule]]"
            )
        if len(rules) > MAX_APPROVAL_RULES:
            raise ToolSetupError(
                f"{self._path}: {len(rules):,} rules; at most {MAX_APPROVAL_RULES:,}"
            )
        if len(self._headers) != len(rules):
            raise ToolSetupError(f"{self._path}: write each rule below a line [[rule]] of its own")

    def problem(self, index: int, field: str, message: str) -> ToolSetupError:
        """Return the error of a field of a rule, with its line: that of the rule if
        the field is not found.
        """
        start = self._headers[index]
        end = len(self._lines)
        if index + 1 < len(self._headers):
            end = self._headers[index + 1]
        key = re.compile(rf"(?:^|[\s{{,.]|\[rule\.)[\"']?{re.escape(field)}[\"']?\s*[=.\]]")
        for number in range(start, end):
            if key.search(self._lines[number]):
                return self._at(number, message)
        return self._at(start, message)

    def _named(self, name: str, message: str) -> ToolSetupError:
        key = re.compile(rf"\A\s*+\[*+\s*+[\"']?{re.escape(name)}\b")
        for number, line in enumerate(self._lines):
            if key.match(line):
                return self._at(number, message)
        return self._at(0, message)

    def _at(self, line: int, message: str) -> ToolSetupError:
        return ToolSetupError(f"{self._path}, line {line + 1}: {message}")


def _parsed(table: dict[str, Any], lines: _Lines, index: int) -> Rule:
    for name in table:
        if name in _CALLER:
            reason = (
                "a caller says that itself, so no rule decides by it; rules see the tool and its "
                "arguments"
            )
            raise lines.problem(index, name, f"{name}: {reason}")
        if name not in Rule.model_fields:
            hint = nearest_or_known(name, sorted(Rule.model_fields))
            raise lines.problem(index, name, f"a rule has no {format_name(name)}{hint}")
    try:
        return Rule.model_validate(table)
    except ValidationError as error:
        place, problem = first_error(error)
        field = place.partition(".")[0].partition("[")[0]
        raise lines.problem(index, field, f"{place}: {problem}") from None


def _check_tool(
    rule: Rule, registry: Registry, lines: _Lines, index: int, *, knows_all: bool
) -> None:
    """Raise ToolSetupError if the rule can never decide, or about more than anybody would allow."""
    if rule.tool == EVERY_TOOL:
        if rule.decision == "allow":
            raise lines.problem(
                index, "tool", "a rule for all tools can ask or refuse; for allow, name the tool"
            )
        if rule.arguments:
            raise lines.problem(
                index, "tool", "a rule for all tools tests no argument; name the tool"
            )
        return
    if rule.tool not in registry:
        if (
            knows_all
            and rule.tool not in registry.left_out
            and not absence_of(rule.tool, registry.absences)
        ):
            known_tools = [each.name for each in registry]
            raise lines.problem(index, "tool", no_such_tool(rule.tool, known_tools))
        return
    tool = registry.get(rule.tool)
    if tool.effect != "write":
        raise lines.problem(
            index,
            "tool",
            f"{tool.name} does not write (its effect is {tool.effect}), so nobody asks",
        )
    known = tool.schema.get("properties")
    if not isinstance(known, dict):
        return
    for argument in rule.arguments:
        if argument not in known:
            hint = nearest_or_known(argument, sorted(known))
            raise lines.problem(
                index, argument, f"{tool.name} has no argument {format_name(argument)}{hint}"
            )


def _taken(tool: Tool, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as the tool takes them: of their types, and with its defaults."""
    checked = tool.check(written)
    if isinstance(checked, BaseModel):
        return checked.model_dump(mode="json", by_alias=True)
    known = tool.schema.get("properties")
    if not isinstance(known, dict):
        return checked
    defaults: dict[str, Any] = {}
    for name, schema in known.items():
        if isinstance(schema, dict) and "default" in schema:
            defaults[name] = schema["default"]
    return {**defaults, **checked}


def _values(argument: str, readings: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [reading[argument] for reading in readings if argument in reading]


def _agreed(answers: Iterable[Answer]) -> Answer:
    """Return what all readings of an argument say; one that nobody gives passes no test."""
    different = list(dict.fromkeys(answers))
    if not different:
        return Answer.NO
    if len(different) > 1:
        return Answer.DOUBT
    return different[0]


def _equal(value: Any, wanted: Any) -> Answer:
    return _answer(_same(value, wanted))


def _same(value: Any, wanted: Any) -> bool:
    """Whether two JSON values are the same: numbers by what they are worth, and true is no 1."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, dict) and isinstance(wanted, dict):
        if value.keys() != wanted.keys():
            return False
        return all(_same(value[key], wanted[key]) for key in wanted)
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    return bool(value == wanted)


def _of_no_text(value: Any, test: Callable[[Any], Answer]) -> Answer:
    """Return what a test of texts says of anything else: of a list what it says of each, and of
    nothing no. Of other values nobody knows what a tool makes of them.
    """
    if isinstance(value, list):
        return _agreed(map(test, value))
    if value is None:
        return Answer.NO
    return Answer.DOUBT


def _is_below(value: Any, root: str) -> Answer:
    """Whether a path, or each of several, lies in a folder: as it is written, and where this worker
    has the folder also by where its links lead.

    A relative path is seen from where the tool begins, which only the tool knows: `..`
    of it may lead anywhere.
    """
    if not isinstance(value, str):
        return _of_no_text(value, lambda each: _is_below(each, root))
    if not value or value.startswith("~") or "\0" in value or "\\" in value:
        return Answer.DOUBT
    if value.startswith("/") != root.startswith("/"):
        return Answer.DOUBT
    placed = _placed(posixpath.normpath(value), root)
    if not value.startswith("/"):
        if ".." in value.split("/"):
            return Answer.DOUBT
        return placed
    really_placed = _placed(os.path.realpath(value), os.path.realpath(root))
    if placed is not really_placed:
        return Answer.DOUBT
    return placed


def _placed(path: str, root: str) -> Answer:
    """Return whether a path that is written out lies in a folder. A call about the folder itself,
    or about one above it, may change what lies in it. So may one about a path that only a machine
    of another kind takes for another one.
    """
    if _is_inside(path, root):
        return Answer.YES
    path, root = _folded(path), _folded(root)
    if path == root or _is_inside(path, root) or _is_inside(root, path):
        return Answer.DOUBT
    return Answer.NO


def _is_inside(path: str, root: str) -> bool:
    """Whether a path that is written out lies in a folder. The folder itself does not."""
    if root in (".", "/"):
        return path not in (".", "/") and not path.startswith("../")
    return path.startswith(f"{root.rstrip('/')}/")


def _folded(path: str) -> str:
    """Return a path as the file systems of macOS and Windows compare it: by letters of
    any case, in any form.
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def _has_origin(value: Any, origin: str) -> Answer:
    if not isinstance(value, str):
        return _of_no_text(value, lambda each: _has_origin(each, origin))
    found = origin_of(value)
    if found is None or found[2] is None:
        return Answer.DOUBT
    return _answer(found == origin_of(origin))


def origin_of(url: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of a URL, None for a text that libraries may read differently.
    The port is None for a scheme that has none of its own. An address has one form here, and one
    that only some libraries read has none.
    """
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme = found["scheme"].lower()
    host = _host(found["host"].lower())
    if host is None:
        return None
    port = _PORTS.get(scheme)
    if found["port"]:
        port = int(found["port"])
    return scheme, host, port


def _host(text: str) -> str | None:
    """Return a host in its one form, None for an address in a form of which
    libraries know different ones.
    """
    last = text.rpartition(".")[2]
    if not text.startswith("[") and not last[:1].isdigit():
        return text
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return None


def _answer(holds: bool) -> Answer:
    return Answer.YES if holds else Answer.NO
