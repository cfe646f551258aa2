"""Plan files: YAML or JSON to plain data, with the line of every part kept for what is found wrong with it.

The only place that reads YAML. Size, depth and the number of values are bounded before anything is built, so an
alias bomb is a sentence and not a dead client.
"""

import sys
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from starter.client.errors import Refused
from starter.client.text import flat
from starter.plans.catalogue import Catalogue
from starter.plans.json_text import read_json
from starter.plans.positions import MAX_DEPTH, Misread, Scalar, Spot, counted, find, plain, put, too_deep
from workflows.plan.checking.validation import parse_plan, problems_of
from workflows.plan.language.nodes import Plan
from workflows.plan.language.problems import InvalidPlan, Problem

MAX_BYTES = 5 * 1024 * 1024
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_QUIRKS = {"yes", "no", "on", "off"}


class BadPlan(Refused):
    """A plan file with problems. The message has one line for each, `file:line: what is wrong`."""

    bare = True


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as read: `data` is plain JSON, `root` knows the lines."""

    name: str
    root: Spot
    data: dict[str, Any]

    def line(self, problem: Problem) -> str:
        """Return a problem as `file:line: sentence`."""
        spot = find(self.root, problem.where)
        return f"{self.name}:{spot.line}: {flat(str(problem))}{_quirk(spot)}"

    def plan(self) -> Plan:
        """Return the plan; raises BadPlan with every problem of its form."""
        try:
            return parse_plan(self.data)
        except InvalidPlan as invalid:
            raise BadPlan("\n".join(map(self.line, invalid.problems))) from None

    def check(self, catalogue: Catalogue | None) -> Plan:
        """Return the plan when nothing is wrong with it; raises BadPlan. Without a catalogue tools are not checked."""
        plan = self.plan()
        problems = problems_of(plan, catalogue.tools, models=catalogue.models) if catalogue else problems_of(plan)
        if problems:
            raise BadPlan("\n".join(map(self.line, problems)))
        return plan


def read_plan(path: str) -> PlanFile:
    """Return the plan file at `path`, `-` for standard input; raises BadPlan when it cannot be read."""
    name = "stdin" if path == "-" else path
    text = _decode(name, _read(path))
    is_json = path.endswith(".json") or (not path.endswith((".yaml", ".yml")) and text.lstrip()[:1] == "{")
    try:
        root = read_json(text) if is_json else read_yaml(text)
    except Misread as misread:
        raise BadPlan(f"{name}:{misread.line}: {flat(str(misread))}") from None
    if not isinstance(root.value, dict):
        raise BadPlan(f"{name}:{root.line}: a plan is an object with `nodes`, not {_shape(root.value)}")
    return PlanFile(name, root, plain(root))


def _read(path: str) -> bytes:
    if path == "-":
        body = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        try:
            with Path(path).open("rb") as file:
                body = file.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            raise BadPlan(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(body) > MAX_BYTES:
        raise BadPlan(f"{path}: over {MAX_BYTES // 1024 // 1024} MiB; use `map` for many alike nodes")
    return body


def _decode(name: str, body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadPlan(f"{name}:{line}: not UTF-8 text") from None


def _quirk(spot: Spot) -> str:
    if spot.written is None:
        return ""
    return f"; YAML reads `{spot.written}` as {str(spot.value).lower()}: to mean the word, write '{spot.written}'"


def _shape(value: object) -> str:
    names = {list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), "a single value")


@dataclass(slots=True)
class _Open:
    """A list or object still being read; `key` is the one whose value comes next."""

    spot: Spot
    anchor: str | None
    key: str | None = None
    key_line: int = 0

    def add(self, item: Spot) -> None:
        self.spot.size = counted(self.spot.size + item.size, item.line)
        if isinstance(self.spot.value, list):
            self.spot.value.append(item)
        elif self.key is None:
            self.key, self.key_line = _key(item), item.line
        elif isinstance(self.spot.value, dict):
            put(self.spot.value, self.key, item, self.key_line)
            self.key = None


@dataclass(slots=True)
class _Builder:
    """Builds values from YAML events without recursion."""

    loader: Any
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, Spot | None] = field(default_factory=dict)
    root: Spot | None = None

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            self._place(self._alias(event.anchor, line))
        elif isinstance(event, yaml.ScalarEvent):
            spot = self._scalar(event, line)
            if event.anchor:
                self.anchors[event.anchor] = spot
            self._place(spot)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            done = self.stack.pop()
            if done.anchor:
                self.anchors[done.anchor] = done.spot
            self._place(done.spot)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise Misread(line, "a second document begins here; a file holds one plan")

    def _open(self, event: Any, line: int) -> None:
        if event.tag not in (None, "!"):
            raise Misread(line, f"the tag `{event.tag}` has no meaning in a plan")
        if len(self.stack) >= MAX_DEPTH:
            raise too_deep(line)
        if event.anchor:
            self.anchors[event.anchor] = None
        empty: dict[str, Spot] | list[Spot] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.stack.append(_Open(Spot(line, empty), event.anchor))

    def _place(self, spot: Spot) -> None:
        if self.stack:
            self.stack[-1].add(spot)
        else:
            self.root = spot

    def _alias(self, name: str | None, line: int) -> Spot:
        if name is None or name not in self.anchors:
            raise Misread(line, f"`*{name}` names an anchor that is not above it")
        spot = self.anchors[name]
        if spot is None:
            raise Misread(line, f"`*{name}` stands inside `&{name}`: a plan cannot contain itself")
        return Spot(line, spot.value, spot.size, spot.written)

    def _scalar(self, event: Any, line: int) -> Spot:
        explicit = event.tag if event.tag not in (None, "!") else None
        tag = (explicit or self.loader.resolve(yaml.ScalarNode, event.value, event.implicit)).removeprefix(_TAG)
        value = _scalar_value(tag, event.value, line, explicit=explicit is not None)
        odd = isinstance(value, bool) and event.value.lower() in _QUIRKS
        return Spot(line, value, written=event.value if odd else None)


def read_yaml(text: str) -> Spot:
    """Return the value of the one YAML document in `text`; raises Misread."""
    loader = _LOADER("")
    builder = _Builder(yaml.SafeLoader(""))
    try:
        loader = _LOADER(text)
        while loader.check_event():
            builder.take(loader.get_event())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line if mark else 0
        raise Misread(line + 1, _sentence(error, text.splitlines()[line : line + 1])) from None
    except yaml.reader.ReaderError as error:
        raise Misread(
            text.count("\n", 0, error.position) + 1, f"YAML allows no such character: {error.reason}"
        ) from None
    finally:
        loader.dispose()
    if builder.root is None:
        raise Misread(1, "the file is empty")
    return builder.root


def _sentence(error: yaml.MarkedYAMLError, lines: list[str]) -> str:
    problem = error.problem or "not YAML"
    if lines and "\t" in lines[0][: len(lines[0]) - len(lines[0].lstrip())]:
        problem += " (a tab: indent with spaces)"
    return f"{error.context}: {problem}" if error.context else problem


def _scalar_value(tag: str, text: str, line: int, *, explicit: bool) -> Scalar:
    if tag in ("str", "timestamp", "value") or not text.isprintable():
        return text
    if tag == "merge":
        raise Misread(line, "merge keys (`<<`) are not part of the plan language; write the fields out")
    if tag == "null":
        return None
    if tag not in ("bool", "int", "float"):
        raise Misread(line, f"the tag `{tag}` has no meaning in a plan")
    return _number_or_bool(tag, text, line, explicit=explicit)


def _number_or_bool(tag: str, text: str, line: int, *, explicit: bool) -> Scalar:
    maker: Any = yaml.constructor.SafeConstructor()
    try:
        value = getattr(maker, f"construct_yaml_{tag}")(yaml.ScalarNode(_TAG + tag, text))
    except (ValueError, KeyError, IndexError):
        raise Misread(line, f"`{text[:40]}` is no {tag}" + ("" if explicit else "; quote it if it is text")) from None
    if tag == "float" and not isfinite(value):
        raise Misread(line, f"`{text}` is not a number a plan can hold")
    return value if isinstance(value, bool | int | float) else text


def _key(item: Spot) -> str:
    """Return a key's text; YAML's other keys are refused, with the reason when a word was read as true or false."""
    if isinstance(item.value, str):
        return item.value
    if isinstance(item.value, bool) and item.written:
        shown = item.written
        raise Misread(item.line, f"YAML reads the key `{shown}` as {str(item.value).lower()}; write it as '{shown}'")
    if isinstance(item.value, dict | list):
        raise Misread(item.line, "a key is text, not a list or an object")
    raise Misread(item.line, f"the key `{item.value}` is read as a value, not as text; put it in quotes")
