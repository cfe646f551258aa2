"""The planner's wire format: LLMCompiler's numbered lines (arXiv 2312.04511), read while they are being written.

`2. read(path=${1.items[0].path})` is the node `n2`, and `$1` in it means `n1`. Lines may be numbered in any of the ways
that docs/replies.md lists, or be a list without numbers. A reply that is JSON is read as calls in JSON, which begin as
early as lines do, or as a plan in the plan language.

The result does not depend on how the text was cut into pieces, and takes time linear in its length. No text makes the
reader fail. Whatever looks like a call of a known tool becomes a node, or an error that says what to write instead.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from workflows.plan.language.text import ThoughtFilter, format_name, format_value
from workflows.plan.planner_format.call_text import WIDE, CallText, Unbalanced
from workflows.plan.planner_format.calls import Node, Tools
from workflows.plan.planner_format.json_calls import CallStream, JsonCall, calls_in
from workflows.plan.planner_format.json_text import NoJson, begins_json, extract_json
from workflows.plan.planner_format.plan_builder import PlanBuilder
from workflows.plan.planner_format.written_calls import mark_of_call, written_calls

_CALL = re.compile(r"(?<!\w)(?P<name>[A-Za-z_][\w.-]{0,79}+)(?P<gap>[\s*`]*+)[(\uff08]", re.ASCII)
_DECORATION = re.compile(r"[\s*`#>|\u2022\u2013\u2014~\u200b\ufeff-]+")
_LEAD = re.compile(
    r"(?:(?P<number>(?<![\w.])\d{1,9})[)\]>]? ?(?P<sign>[.):=,]?)[ .:]?)?"
    r"(?:[#$]?(?P<target>[A-Za-z]\w{0,39}|\d{1,9}) ?= ?)?"
    r"(?:\b(?:call|use|run|do|execute|invoke|then|await|tool|action):? ?)?\Z",
    re.IGNORECASE | re.ASCII,
)
_LABEL = re.compile(
    r"(?:[\[(<$#]|(?:step|task|action|line|call|tool|plan|thoughts?|n)\.?:? ?[\[(#$]?)?\Z", re.IGNORECASE
)
_HEADING = re.compile(
    r"(?:(?:step|task|action|line) ?[\[(#]?(?P<step>\d{1,9})[.:)\]]*|[\[($#n]?(?P<number>\d{1,9})[.):\]=]*)(?: |\Z)",
    re.IGNORECASE | re.ASCII,
)
_NO_BRACKET = re.compile(
    r"(?:[#$]?\w{1,40} ?= ?)?(?:(?P<label>action|tool|function|call):? )?(?P<name>[A-Za-z_][\w.-]{0,79}+) ?"
    r"(?P<after>\Z|[\"'\u201c$:=\[{<|])",
    re.IGNORECASE | re.ASCII,
)
_THOUGHT = re.compile(r"(?:thoughts?|thinking|reasoning)\b ?:", re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[\w-]*")
_END = re.compile(r"[<\[]?[|/]?END(?:[ _-]OF[ _-]PLAN)?[|]?[>\]]?", re.IGNORECASE)
_JSON = re.compile(r"\s*(?:\{\s*[\"'\u201c]|\[\s*\{)")
_GOES_ON = re.compile(r"\.[A-Za-z_]|\[|\s*[+%]")
_MEANT = re.compile(r"\s*(?:[\"'\u201c$)]|\w+\s*=)")
_ENDS_PLAN = ("answer", "join")
_LONGEST_LEAD = 80
_NOISE = " \t\r\n`*;,.|"


@dataclass(slots=True)
class _OpenCall:
    """A call whose end has not come yet. One among words, which `text` quotes, has no number: it is no line."""

    number: int | None
    name: str
    text: str
    result: str = ""
    counted: bool = False
    arguments: CallText = field(default_factory=CallText)


class LineReader:
    """Reads one reply. `tools` maps names to argument schemas; `known` are the nodes of a plan that the reply adds to,
    `gathered` those of them that an answer takes beside the new ones when it names none. Tools that are `writes` need
    not have their results used.
    """

    def __init__(
        self, tools: Tools, known: Sequence[str] = (), gathered: Sequence[str] = (), writes: Collection[str] = ()
    ) -> None:
        self._start = partial(PlanBuilder, tools, known, gathered, writes)
        self._thoughts = ThoughtFilter()
        self._rest: list[str] = []
        self.restarted = False
        """Whether what was read first turned out to be a thought, so that nodes given before may be none."""
        self._begin()

    def _begin(self) -> None:
        self._made = self._early = self._start()
        self._json: list[str] | None = None
        self._stream: CallStream | None = None
        self._plan: Node | None = None
        self._call: _OpenCall | None = None
        self._mentioned: list[tuple[str, str, str]] = []
        self._heading: int | None = None
        self._given = 0
        self._numbered = self._broken = self._ended = False

    @property
    def plan(self) -> Node:
        """The plan in the plan language as far as it was read; whole after `close`, if there was no error."""
        if self._plan is not None:
            return self._plan
        answer = {"answer": f"${self._made.answer}"} if self._made.answer else {}
        return {"nodes": self._made.nodes, **answer}

    @property
    def errors(self) -> list[str]:
        """Why the reply is no whole plan so far, each with its line and what to write instead."""
        return self._made.errors

    @property
    def warnings(self) -> list[str]:
        """What was left out of the reply or added to it, and words taken for an amount."""
        return self._made.warnings

    def feed(self, piece: str) -> list[Node]:
        """Take the next piece of the reply; return the nodes that it completes, none after the first error.

        Each comes after those it refers to. Half surrogate pairs become `?`.
        """
        if not piece.isascii():
            piece = piece.encode("utf-8", "replace").decode()
        first, *others = piece.split("\n")
        self._rest.append(first)
        for other in others:
            self._row("".join((*self._rest, "\n")))
            self._rest = [other]
        return self._early_nodes(piece) or self._new_nodes(self._made)

    def _early_nodes(self, piece: str) -> list[Node]:
        """Return the nodes of calls in JSON that a piece completes; the whole is read once more when it has ended."""
        if self._stream is None:
            late = len(self._rest) + len(self._json or ()) > _LONGEST_LEAD
            if late or self._made.begun or self._call is not None or self._thoughts.open:
                return []
            begun = CallStream.begin("".join((*(self._json or ()), *self._rest)))
            if begun is None:
                return []
            self._stream, piece = begun
            self._early = self._start()
        for call in self._stream.feed(piece):
            _add(self._early, call)
        return self._new_nodes(self._early)

    def close(self) -> list[Node]:
        """Say that the reply has ended; return the nodes of the rest."""
        self._row("".join(self._rest))
        self._rest = []
        if self._json is not None:
            self._read_json("".join(self._json))
            if self._plan is None:
                return self._new_nodes(self._made)
            return [node for node in self.plan.get("nodes", ()) if isinstance(node, dict)] if not self.errors else []
        if self._call is not None:
            self._unclosed(self._call)
        if self._thoughts.open:
            self._made.fail("a thought, `<think>`, is never closed; write the plan behind `</think>`")
        for name, source, text in self._mentioned:
            if (name, source) not in self._made.read:
                self._not_read(name, text)
        self._made.finish()
        return self._new_nodes(self._made)

    def _new_nodes(self, made: PlanBuilder) -> list[Node]:
        nodes = made.nodes[self._given : made.sound]
        self._given += len(nodes)
        return nodes

    def _row(self, row: str) -> None:
        """Take a whole row with its line end."""
        row, was_thought = self._thoughts.take(row)
        if was_thought:
            self._begin()
            self.restarted = True
        if self._json is not None:
            self._json.append(row)
            return
        if self._call is None and self._begins_calls(row):
            return
        end: int | None = 0
        if self._call is not None and not self._next_begins(self._call, row):
            end = self._scan(self._call, row, 0)
        elif self._call is not None:
            self._unclosed(self._call)
        if end is not None:
            self._outside(row, end)

    def _next_begins(self, call: _OpenCall, row: str) -> bool:
        """Whether a row ends an open call, because the next one begins there. Triple quotes may hold any row."""
        if len(call.arguments.quote) == 3:
            return False
        begun = self._call_in(row, 0)
        return begun is not None and not begun[0].text and (begun[0].counted or bool(call.arguments.quote))

    def _begins_calls(self, row: str) -> bool:
        """Whether a row is the first of JSON, or of calls in the way of a chat template, and not of lines."""
        mark = mark_of_call(row)
        if mark and self._call_in(row, 0) is not None:
            return False
        if mark is not None and self._made.begun:
            self._made.fail(f"{format_value(row[mark:][:100].strip())} looks like a call; write all calls as lines")
        elif mark is not None or (_JSON.match(row) and not self._made.begun):
            self._json = [row[mark or 0 :]]
        else:
            return False
        return True

    def _outside(self, row: str, at: int) -> None:
        """Read the calls in a row from a place on where none is open, and then what else stands there."""
        behind = at > 0
        while (begun := self._call_in(row, at)) is not None:
            call, inside = begun
            end = self._scan(call, row, inside) if self._takes(call, row, behind) else None
            if end is None:
                return
            at, behind = end, True
        self._words(row[at:], behind)

    def _call_in(self, row: str, at: int) -> tuple[_OpenCall, int] | None:
        """Return the next call in a row and where its arguments begin.

        A known name and a bracket are a call, unless the bracket is one in a sentence; an unknown name only where a
        line begins.
        """
        for found in _CALL.finditer(row, at):
            name, spaced = found["name"], bool(found["gap"].strip("*`"))
            known, meant = self._made.known_call(name), _MEANT.match(row, found.end()) is not None
            alike = known or (meant and any(map(self._made.known_call, re.split(r"[.-]", name))))
            if alike or found.start() - at < _LONGEST_LEAD:
                call = _begun(row[at : found.start()], known or name, row, known=bool(known))
                numbered = call.number is not None and (known or not spaced)
                if (alike and (meant or not spaced)) or numbered or (meant and not spaced and not call.text):
                    return call, found.end()
        return None

    def _takes(self, call: _OpenCall, row: str, behind: bool) -> bool:
        """Whether a call that begins can be read on, as a line with a number or as words."""
        number = self._made.last + 1
        if self._ended:
            wrong = "stands behind the end of the plan; write the end last"
        elif call.text or call.number is not None:
            self._numbered |= call.number is not None
            self._heading = None if call.number is not None else self._heading
            return True
        elif behind:
            wrong = f"holds two calls; write one call a line, such as {number}. {call.name}(...)"
        elif self._heading is not None or not self._numbered or call.name in _ENDS_PLAN:
            self._numbered |= self._heading is not None
            call.number, self._heading = number if self._heading is None else self._heading, None
            return True
        else:
            wrong = f"has no number; write {number}. {call.name}(...)"
        self._broken = True
        self._made.fail(f"{format_value(row[:100].strip())} {wrong}")
        return False

    def _scan(self, call: _OpenCall, row: str, at: int) -> int | None:
        """Read on in an open call; return where it ends, None if it does not end in this row or is broken."""
        self._call, self._broken = call, False
        try:
            end = call.arguments.take(row, at)
        except Unbalanced as error:
            self._fail(call, str(error))
            return None
        if end is not None:
            self._call = None
            self._closed(call)
        elif call.number is None:
            self._fail(call, "")
        return end

    def _closed(self, call: _OpenCall) -> None:
        source = call.arguments.source
        if call.number is None:
            self._mentioned += [(call.name, source, call.text)] if source.strip(".\u2026'") else []
        elif call.counted or call.name not in _ENDS_PLAN or (call.name, source) not in self._made.read:
            self._made.add(call.number, call.name, call.arguments, call.result)

    def _fail(self, call: _OpenCall, wrong: str) -> None:
        self._call, self._broken = None, True
        if call.number is not None:
            self._made.broken(call.number, wrong)
        else:
            self._not_read(call.name, call.text)

    def _unclosed(self, call: _OpenCall) -> None:
        self._fail(call, f"{format_name(call.arguments.missing)} is missing at its end; close every quote and bracket")

    def _not_read(self, name: str, text: str) -> None:
        self._made.fail(f"{text} looks like a call of {name}; write it as a line, {self._made.last + 1}. {name}(...)")

    def _words(self, row: str, behind: bool) -> None:
        """What is no call: JSON, the end, a line that misses its brackets, a heading, a thought, or other words."""
        text = row.strip()
        if behind and _GOES_ON.match(row):
            part = f"refer to a part of its result in a later line, as ${{{self._made.last}.name}}"
            self._made.fail(f"line {self._made.last}: {format_value(text)} stands behind the call; {part}")
        elif not text.strip(_NOISE) or _FENCE.fullmatch(text) or self._ended:
            return
        elif _END.fullmatch(text.strip(_NOISE)):
            self._ended = True
        elif behind:
            self._made.warn(f"line {self._made.last}: {format_value(text)} behind the call was left out")
        elif not self._made.begun and begins_json(row):
            self._json = [row]
        else:
            self._prose(text, " ".join(_DECORATION.sub(" ", text.translate(WIDE)).split()))

    def _prose(self, text: str, plain: str) -> None:
        heading = _HEADING.match(plain)
        number = int(heading["step"] or heading["number"]) if heading else self._made.last + 1
        found = _NO_BRACKET.match(plain, heading.end() if heading else 0)
        name = self._made.known_call(found["name"]) if found else ""
        exact = name == found["name"] or found["after"] not in ("", ":") if found else False
        if name and found and exact and (heading or found["label"] or name in self._made.tools):
            self._made.fail(f"{format_value(text)} is no whole call; write {number}. {name}(...)")
        elif heading:
            self._heading = number
            self._made.leave_out(number, format_value(text))
        elif not self._broken and not _THOUGHT.match(plain):
            self._made.warn(f"{format_value(text)} is no call and was left out")

    def _read_json(self, text: str) -> None:
        try:
            calls, behind = self._calls_or_plan(text)
        except NoJson as error:
            self._made.fail(f"the reply is no plan: {error}")
            return
        for call in calls:
            _add(self._made, call)
        nodes = self.plan.get("nodes")
        if self._plan is None:
            self._made.finish()
        elif not isinstance(nodes, list) or not nodes:
            self._made.fail("the JSON holds no plan; it needs `calls`, a list of objects with `tool` and `arguments`")
        if self._call_in(behind, 0):
            self._made.fail(f"{format_value(behind)} stands behind the JSON; write JSON or numbered lines, not both")
        elif behind.strip(_NOISE):
            self._made.warn(f"{format_value(behind)} behind the JSON was left out")

    def _calls_or_plan(self, text: str) -> tuple[list[JsonCall], str]:
        """Return (calls, text behind them); none if the JSON is a plan in the plan language. Raises NoJson."""
        if mark_of_call(text) == 0:
            return written_calls(text, self._made.tools)
        value, behind = extract_json(text)
        if isinstance(value, dict) and isinstance(value.get("plan"), dict):
            value = value["plan"]
        calls = calls_in(value)
        if calls is None:
            self._plan = value if isinstance(value, dict) else {"nodes": value}
        return calls or [], behind


def _add(made: PlanBuilder, call: JsonCall) -> None:
    made.add(call.number, made.known_call(call.name) or call.name, call)


def _begun(lead: str, name: str, row: str, *, known: bool) -> _OpenCall:
    """Return the call behind a lead, such as `- **Step 1.** height =`, or `1. Look it up with` before a known name.

    `text` is set if the lead is words.
    """
    plain = " ".join(_DECORATION.sub(" ", lead.translate(WIDE)).split())
    found = _LEAD.search(plain, max(0, len(plain) - _LONGEST_LEAD))
    assert found is not None
    words, target = plain[: found.start()], found["target"] or ""
    own = re.fullmatch(r"n?(\d{1,9})", target)
    number = found["number"] or (own[1] if own else None)
    label = _LABEL.fullmatch(words) is not None
    heading = _HEADING.match(words) if known and number is None else None
    if heading is not None:
        return _OpenCall(int(heading["step"] or heading["number"]), name, "", "" if own else target, counted=True)
    sentence = bool(found["sign"]) if found["number"] else words.endswith(":") and not _THOUGHT.match(words)
    text = "" if label or sentence else format_value(row[:100].strip())
    result = "" if own else target
    return _OpenCall(None if text or number is None else int(number), name, text, result, number is not None)
