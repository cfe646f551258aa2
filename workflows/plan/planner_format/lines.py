"""The planner's wire format: LLMCompiler's numbered lines (arXiv 2312.04511), read while they are being written.

`2. read(path=${1.items[0].path})` is the node `n2`, and `$1` in it means `n1`. A reply that is JSON is read as a plan
in JSON. The result does not depend on how the text was cut into pieces, takes time linear in its length, and no text
makes the reader fail. No node is lost silently: every line that may be a call becomes a node, a warning, or an error
that names it.
"""

import re
from collections.abc import Sequence

from workflows.plan.language.text import format_name, format_value
from workflows.plan.planner_format.calls import Node, Tools
from workflows.plan.planner_format.json_text import NoJson, begins_json, extract_json
from workflows.plan.planner_format.plan_builder import (
    Event,
    LineError,
    LineNode,
    LineWarning,
    NumberedCall,
    PlanBuilder,
)
from workflows.plan.planner_format.tokens import Unbalanced

_LINE = re.compile(
    r"[\s>*`;,-]*(?:(?:step|task|action|line)\s)?[$n#]?(?P<number>\d{1,9})[\s*`]*[.):=][\s*`]*"
    r"(?:(?P<name>[A-Za-z_][\w.-]{0,79})(?P<gap>[\s`]*)(?P<open>\()?)?",
    re.IGNORECASE | re.ASCII,
)
_NEXT = re.compile(r"\s*(?P<number>\d{1,9})[.)]\s*[A-Za-z_][\w.-]{0,79}\(", re.ASCII)
_BARE = re.compile(r"[\s>*`;,-]*(?P<name>[A-Za-z_][\w.-]{0,79})\(", re.ASCII)
_CALLS = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]{0,79})\(", re.ASCII)
_THOUGHT = re.compile(r"[\s*_#>-]*(?:thoughts?|thinking|reasoning)\b[\s*_]*:", re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[\w-]*")
_END = re.compile(r"[<\[]?[|/]?END(?:[ _-]OF[ _-]PLAN)?[|]?[>\]]?", re.IGNORECASE)
_THINK = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_OUT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_GOES_ON = re.compile(r"\s*(?:\.[A-Za-z_]|[\[+])")
_NOISE = " \t\r\n`*;,."


__all__ = ["Event", "LineError", "LineNode", "LineReader", "LineWarning"]


class LineReader:
    """Reads one reply. `tools` maps names to argument schemas; `known` are the nodes of a plan that the reply adds to,
    `gathered` those of them that an answer takes beside the new ones when it names none.
    """

    def __init__(self, tools: Tools, known: Sequence[str] = (), gathered: Sequence[str] = ()) -> None:
        self._made = PlanBuilder(tools, known, gathered)
        self._rest: list[str] = []
        self._json: list[str] | None = None
        self._plan: Node | None = None
        self._call: NumberedCall | None = None
        self._thinking = self._broken = self._ended = False

    @property
    def plan(self) -> Node:
        """The plan in the plan language as far as it was read; whole after `close`, if there was no error."""
        if self._plan is not None:
            return self._plan
        answer = {"answer": f"${self._made.answer}"} if self._made.answer else {}
        return {"nodes": self._made.nodes, **answer}

    def feed(self, piece: str) -> list[Event]:
        """Take the next piece of the reply; return what it completes. Half surrogate pairs become `?`."""
        if not piece.isascii():
            piece = piece.encode("utf-8", "replace").decode()
        first, *others = piece.split("\n")
        self._rest.append(first)
        for other in others:
            self._row("".join((*self._rest, "\n")))
            self._rest = [other]
        return self._told()

    def close(self) -> list[Event]:
        """Say that the reply has ended; return the rest."""
        self._row("".join(self._rest))
        self._rest = []
        if self._json is not None:
            self._read_json("".join(self._json))
            return self._told()
        if self._call is not None:
            self._unclosed(self._call, ", so what stands behind it was not read" * self._call.tokens.verbatim)
        if self._thinking:
            self._made.warn("`<think>` is never closed, so what stands behind it was not read")
        self._made.finish()
        return self._told()

    def _told(self) -> list[Event]:
        events, self._made.events = self._made.events, []
        return events

    def _row(self, row: str) -> None:
        """Take a whole row with its line end."""
        if self._json is not None:
            self._json.append(row)
            return
        at = 0
        if self._call is not None and not self._next_begins(self._call, row):
            end = self._scan(row, 0)
            if end is not None:
                self._outside(row, end, behind=True)
            return
        if self._call is not None:
            self._unclosed(self._call)
        elif self._thinking or _THINK.match(row):
            found = _THOUGHT_OUT.search(row)
            self._thinking = found is None
            at = found.end() if found else len(row)
        self._outside(row, at, behind=False)

    def _next_begins(self, call: NumberedCall, row: str) -> bool:
        """Whether a row ends an open call, because the next one begins there. Triple quotes may hold any row."""
        found = None if call.tokens.verbatim else _NEXT.match(row)
        number = int(found["number"]) if found else 0
        if found and self._made.has(number) and number < call.number:
            self._made.warn(f"line {call.number} holds a row that looks like line {number}")
            return False
        return found is not None

    def _outside(self, row: str, at: int, *, behind: bool) -> None:
        """Read the calls in a row from a place on where none is open, and then what else stands there.

        `behind` says that a call has just ended there.
        """
        while not self._ended and (begun := self._begun(row, at)) is not None:
            self._call, inside = begun
            self._broken = False
            end = self._scan(row, inside)
            if end is None:
                return
            at, behind = end, True
        text = row[at:].strip()
        if self._ended:
            self._ignore(text)
        elif not text or _FENCE.fullmatch(text):
            return
        elif _END.fullmatch(text):
            self._ended = True
        elif behind:
            self._tail(text)
        elif not self._broken:
            self._prose(row[at:], text)

    def _ignore(self, text: str) -> None:
        found = _LINE.match(text)
        if found and found["open"]:
            self._made.warn(f"line {int(found['number'])} stands behind the end of the plan and was left out")

    def _begun(self, row: str, at: int) -> tuple[NumberedCall, int] | None:
        """Return the call that begins here and where its arguments do, or None. An answer needs no number."""
        found = _LINE.match(row, at)
        if found and found["open"] and (not found["gap"] or self._made.is_name(found["name"])):
            number = int(found["number"])
        elif (found := _BARE.match(row, at)) and found["name"].lower() in ("answer", "join"):
            number = self._made.last + 1
        else:
            return None
        return self._made.begin(number, found["name"]), found.end()

    def _tail(self, text: str) -> None:
        """What stands behind a call in its row: nothing of a plan, or an error."""
        calls = (found[1] for found in _CALLS.finditer(text))
        if _GOES_ON.match(text) or any(map(self._made.is_name, calls)):
            self._made.fail(
                f"line {self._made.last}: {format_value(text)} stands behind the call; "
                "write one call a line, and only that"
            )
        elif text.strip(_NOISE):
            self._made.warn(f"line {self._made.last}: {format_value(text)} behind the call was left out")

    def _prose(self, row: str, text: str) -> None:
        """A row that begins no call: JSON, a thought, a call that misses its number or its brackets, or words."""
        if not self._made.begun and begins_json(row):
            self._json = [row]
        elif _THOUGHT.match(text):
            return
        elif (found := _BARE.match(text)) and self._made.is_name(found["name"]):
            self._made.fail(f"{format_value(text)} has no number; write `{self._made.last + 1}. {found['name']}(...)`")
        elif (found := _LINE.match(text)) and found["name"]:
            self._numbered(found, text)
        else:
            self._made.warn(f"{format_value(text)} is no call and was left out")

    def _numbered(self, found: re.Match[str], text: str) -> None:
        number, name = int(found["number"]), found["name"]
        self._made.leave(number)
        if self._made.is_name(name) and text[found.end() :][:1] in ("", "$", '"', "'", ":", "=", "[", "{"):
            self._made.fail(f"line {number} is no call; write `{number}. {name}(...)`")
        else:
            self._made.warn(f"line {number} is no call and was left out: {format_value(text)}")

    def _scan(self, row: str, at: int) -> int | None:
        """Read on in the open call; return where it ends, None if it does not end in this row or is broken."""
        call = self._call
        assert call is not None
        try:
            end = call.tokens.take(row, at)
        except Unbalanced as error:
            self._call, self._broken = None, True
            self._made.fail(f"line {call.number}: {error}")
            return None
        if end is not None:
            self._call = None
            self._made.take(call)
        return end

    def _unclosed(self, call: NumberedCall, more: str = "") -> None:
        self._call = None
        self._made.fail(f"line {call.number}: {format_name(call.tokens.missing)} is missing at its end{more}")

    def _read_json(self, text: str) -> None:
        try:
            value, behind = extract_json(text)
        except NoJson as error:
            self._made.fail(f"the reply is no plan: {error}")
            return
        if isinstance(value, dict) and isinstance(value.get("plan"), dict):
            value = value["plan"]
        self._plan = value if isinstance(value, dict) else {"nodes": value}
        nodes = self._plan.get("nodes")
        if not isinstance(nodes, list) or not nodes:
            self._made.fail("the JSON holds no plan; it needs `nodes`, a list of objects")
            return
        if behind.strip(_NOISE):
            self._made.warn(f"{format_value(behind)} behind the JSON was left out")
        self._made.events += [LineNode(node) for node in nodes if isinstance(node, dict)]
