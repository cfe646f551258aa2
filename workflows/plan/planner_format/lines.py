"""The planner's wire format: LLMCompiler's numbered lines (arXiv 2312.04511), read while
they are being written.

`2. read(path=${1.items[0].path})` is the node `n2`, and `$1` in it means `n1`.
docs/replies.md has the grammar. A reply that is JSON is read, once it is whole, as calls in
JSON or as a plan in the plan language.

A call is what the grammar says, and everything else is text. Where text looks like a call of
a known tool, the plan is not read, and an error says what to write instead. The result does
not depend on how the text was cut into pieces, and takes time linear in its length. No text
makes the reader fail.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from sennit.workflows.plan.language.text import (
    ThoughtFilter,
    format_name,
    format_value,
    without_frame,
)
from sennit.workflows.plan.planner_format.call_text import CallText
from sennit.workflows.plan.planner_format.calls import Node
from sennit.workflows.plan.planner_format.json_calls import (
    JsonCall,
    begins_json,
    calls_or_plan,
    frame_before_calls,
)
from sennit.workflows.plan.planner_format.json_text import Unreadable
from sennit.workflows.plan.planner_format.plan_builder import PlanBuilder
from sennit.workflows.plan.planner_format.values import Tools
from sennit.workflows.plan.planner_format.written_calls import mark_of_call, written_calls

_NUMBER = (
    r"(?:(?:step|line|task)\s++)?+(?P<number>\d{1,9}+)"
    r"(?:[.):\]|\uff0e\uff09\uff1a\u3001]++|\ufe0f?\u20e3|\s++[\u2013\u2014\u2192-](?=\s)|"
    r"(?=\s))[*`]{0,3}+\s*+"
)
_LEAD = (
    r"(?P<space>[\s\ufeff\u200b]*+)(?:[-+*\u2022]\s++(?:\[ ?\]\s++(?=\d))?+)?+[*`]{0,3}+"
    rf"(?:[(\[]?+{_NUMBER})?+(?:[#$]?+(?P<target>[A-Za-z][A-Za-z0-9_]{{0,39}}+"
    rf"|\d{{1,9}}+)\s*+=\s*+)?[*`]{{0,3}}+"
)
_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,79}+)"
_BRACKET = r"[*`]{0,2}+(?P<gap>\s*+)[(\uff08]"
_LINE = re.compile(rf"{_LEAD}{_NAME}{_BRACKET}", re.IGNORECASE)
_CALL = re.compile(rf"(?<![A-Za-z0-9_]){_NAME}{_BRACKET}(?!\s*+(?:\.\.\.|\u2026))")
_LISTED = re.compile(rf"\s*+\[\s*+{_NAME}\(")
_NAMED = re.compile(rf"[\"'](?:(?:tool_)?name|tool|function)[\"']\s*+:\s*+[\"']{_NAME}[\"']")
_NUMBERED = re.compile(
    r"[\s#>*`\u2022-]*+[(\[]?+(?:(?:step|task|line)\s*+#?(\d{1,9})|(\d{1,9})[.):\]](?!\d))",
    re.IGNORECASE,
)
_MEANT = re.compile(r"\s*+(?:[\"'\u201c$)\uff09]|\w+\s*=)")
_THOUGHT = re.compile(r"[\s*]*+(?:thoughts?|thinking|reasoning)\s*:", re.IGNORECASE)
_COMMENT = re.compile(r"\s*+(?:#|//)")
_CROSSED = re.compile(
    r"~~|<!--|-->|/\*|\*/|</?(?!(?:plan|output|answer|response|result|code)>|s>)[A-Za-z][\w:-]*+"
    r"(?:\s[^<>]*+)?/?>",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\s*+(?:[\u2013\u2014]|--|->|=>|\u2192|[:,(\[*])")
"""What may begin a remark behind a call."""
_REMARK_ROW = re.compile(r"(?:[ ]{2,}+|\t)\s*+(?:[-*>\u2022]\s|[A-Z][\w ]{0,20}:\s)")
_CHANGES = re.compile(
    r"\b(?:no|not|never|none|nothing|cannot|\w+n['\u2019]t|skip\w*|cancel\w*|stop\w*|instead"
    r"|rather|option\w*|maybe|"
    r"perhaps|only|if|unless|until|when\w*|once|while|after\w*|before|then|first|last|later"
    r"|wait\w*|depend\w*|need\w*|"
    r"requir\w*|repeat\w*|again|each|every|for|or|else|otherwise|alternativ\w*|except\w*|fail\w*"
    r"|errors?|wrong|"
    r"remov\w*|replac\w*|ignor\w*|drop\w*|done|ran|was|were|did|has|had|would|could|should|might"
    r"|may|avoid\w*|"
    r"without|example|draft|dummy|hypothe\w*|old\w*|previous\w*|earlier|above|below|see|todo"
    r"|\w+ed)\b|\$|[(\[{<=#?]",
    re.IGNORECASE,
)
"""Words by which a remark may say more than what its call is for: an
order, a condition, a doubt.
"""
_CONDITION = re.compile(
    r"\b(?:only|not|but) (?:if|when)\b|\bunless\b|\bin case\b|\bskip\b|\b(?:do not|don['\u2019]t) "
    r"(?:run|call|do)\b|"
    r"\bif (?:needed|necessary|required|available|empty|nothing|not\b|any of|no \w+|(?:it|that"
    r"|this) (?:fails|finds)|"
    r"(?:line|step|task|call|result)\b|[$#]?\d)",
    re.IGNORECASE,
)
"""Words by which a comment says that its line is to run under a condition,
which a line cannot have.
"""
_NO_DEPENDENCIES = re.compile(
    r"\W*(?:no dependenc\w+|depends on:? (?:none|nothing))\W*", re.IGNORECASE
)
_FENCE = re.compile(r"(?:```|~~~)[\w-]*")
_END = re.compile(r"[<\[]?[|/]?END(?:[ _-]OF[ _-]PLAN)?[|]?[>\]]?", re.IGNORECASE)
_ENDS_PLAN = ("answer", "join")
_NOISE = " \t\r\n`*;,."


@dataclass(slots=True)
class _OpenCall:
    """A call whose end has not come yet. `wrong` says that it is none of the plan's,
    which was told already.
    """

    number: int | None
    name: str
    result: str = ""
    wrong: bool = False
    arguments: CallText = field(default_factory=CallText)


class LineReader:
    """Reads one reply. `tools` maps names to argument schemas; `known` are the nodes of a plan that
    the reply adds to, `gathered` those of them that an answer takes beside the new ones when it
    names none. Tools that are `writes` need not have their results used.
    """

    def __init__(
        self,
        tools: Tools,
        known: Sequence[str] = (),
        gathered: Sequence[str] = (),
        writes: Collection[str] = (),
    ) -> None:
        self._start = partial(PlanBuilder, tools, known, gathered, writes)
        self._thoughts = ThoughtFilter()
        self._rest: list[str] = []
        self.restarted = False
        """Whether nodes were given that turned out to be none: of a thought, or
        of words beside calls.
        """
        self._returned = 0
        self._begin()

    def _begin(self) -> None:
        self._made = self._start()
        self.restarted |= self._returned > 0
        self._json: list[str] | None = None
        self._plan: Node | None = None
        self._call: _OpenCall | None = None
        self._returned = 0
        self._numbered: bool | None = None
        self._broken = self._ended = False

    @property
    def plan(self) -> Node:
        """The plan in the plan language as far as it was read; whole after `close`,
        if there was no error.
        """
        if self._plan is not None:
            return self._plan
        plan: Node = {"nodes": self._made.nodes}
        if self._made.answer:
            plan["answer"] = f"${self._made.answer}"
        return plan

    @property
    def errors(self) -> list[str]:
        """Why the reply is no whole plan so far, each with its line and what to write instead."""
        return self._made.errors

    @property
    def warnings(self) -> list[str]:
        """What was left out of the reply or added to it."""
        return self._made.warnings

    def feed(self, piece: str) -> list[Node]:
        """Take the next piece of the reply; return the nodes that it completes, none
        after the first error.

        Each comes after those it refers to. Half surrogate pairs become `?`.
        """
        if not piece.isascii():
            piece = piece.encode("utf-8", "replace").decode()
        first, *others = piece.split("\n")
        self._rest.append(first)
        for other in others:
            self._row("".join((*self._rest, "\n")))
            self._rest = [other]
        return self._new_nodes()

    def close(self) -> list[Node]:
        """Say that the reply has ended; return the nodes of the rest."""
        self._row("".join(self._rest))
        self._rest = []
        if self._call is not None:
            self._unclosed(self._call)
        if self._thoughts.wrong:
            self._made.fail(f"{self._thoughts.wrong}; write the plan alone, without thoughts")
        if self._json is None:
            self._made.finish(numbered=self._numbered is not False)
            return self._new_nodes()
        self._read_json("".join(self._json))
        if self._plan is None:
            return self._new_nodes()
        if self.errors:
            return []
        return [node for node in self._plan.get("nodes", ()) if isinstance(node, dict)]

    def _new_nodes(self) -> list[Node]:
        nodes = self._made.nodes[self._returned : self._made.sound]
        self._returned += len(nodes)
        return nodes

    def _row(self, row: str) -> None:
        """Take a whole row with its line end."""
        row, was_thought = self._thoughts.take(row)
        if was_thought:
            self._begin()
        if self._json is not None:
            self._json.append(row)
            return
        begun = self._line(row)
        call = self._call
        if call is not None:
            if begun is None or not self._interrupts(call, begun[0]):
                self._scan(call, row, 0)
                return
            self._unclosed(call)
        if begun is not None:
            opened, at = begun
            placed = self._placed(opened, row)
            self._scan(placed, row, at)
        elif not self._begins_calls(row):
            self._words(row.strip(), is_remark=bool(_REMARK_ROW.match(row)))

    def _interrupts(self, call: _OpenCall, begun: _OpenCall) -> bool:
        """Whether an open call has no end, because the next one begins. Triple
        quotes may hold any row.
        """
        quote = call.arguments.quote
        if len(quote) >= 3:
            return False
        return begun.number is not None or quote != ""

    def _line(self, row: str) -> tuple[_OpenCall, int] | None:
        """Return the call that a row begins with and where its arguments begin.

        A name that no tool has makes a line too, unless it stands in a sentence
        such as `Nile (6,650 km)`.
        """
        found = _LINE.match(row)
        if found is None:
            return None
        # The number stands before the call, or is what its result is called: `3. f()`,
        # `n3 = f()`, `3 = f()`.
        result = found["target"] or ""
        written = found["number"] or ""
        digits = re.fullmatch(r"n?(\d{1,9})", result)
        if digits:
            result = ""
            written = written or digits[1]
        number = None
        if written:
            number = int(written)
        if digits and int(digits[1]) != number:
            return None
        if number is None and found["space"].strip("\ufeff\u200b"):
            return None

        # Words have brackets too: behind a gap, a call has to be a known one.
        name = self._made.known_call(found["name"])
        is_meant = number is not None or _MEANT.match(row, found.end()) is not None
        if found["gap"]:
            is_call = bool(name) and is_meant
        else:
            is_call = bool(name) or is_meant
        if not is_call:
            return None
        return _OpenCall(number, name or found["name"], result), found.end()

    def is_line_in(self, text: str) -> bool:
        """Whether a row of a text is a line of a known tool or form; in code, which has
        calls too, a numbered one.
        """
        is_fenced = False
        for row in text.splitlines(keepends=True):
            if row.lstrip().startswith(("```", "~~~")):
                is_fenced = not is_fenced
            begun = self._line(row)
            if begun is None:
                continue
            call, at = begun
            if not self._made.known_call(call.name) or (is_fenced and not call.number):
                continue
            with suppress(Unreadable):
                end = call.arguments.take(row, at)
                if end is None or not self._behind(row[end:]):
                    return True
        return False

    def _placed(self, call: _OpenCall, row: str) -> _OpenCall:
        """Return a call with its number: all lines have one, or none but the end."""
        number = self._made.last + 1
        if self._ended:
            wrong = "stands behind the end of the plan; write the end last"
        elif call.number is None and self._numbered and call.name not in _ENDS_PLAN:
            wrong = f"has no number; write {number}. {call.name}(...)"
        elif call.number is not None and self._numbered is False:
            wrong = "has a number, and the lines above have none; give each line its number"
        else:
            self._numbered = call.number is not None or bool(self._numbered)
            if call.number is None:
                call.number = number
            return call
        self._made.fail(f"{format_value(row[:100].strip())} {wrong}")
        call.wrong = True
        return call

    def _begins_calls(self, row: str) -> bool:
        """Whether a row is the first of JSON, or of calls in the way of a chat
        template, and not of lines.
        """
        if not self._made.begun:
            row = row[frame_before_calls(row) :]
        mark = mark_of_call(row)
        listed = _LISTED.match(row)
        whole = begins_json(row) or (listed and self._made.known_call(listed["name"]))
        if mark is None and not whole:
            return False
        if mark and _CROSSED.search(row, 0, mark):
            return False
        begins = mark or 0
        if self._made.begun:
            shown = format_value(row[begins:][:100].strip())
            self._made.fail(f"{shown} looks like a call; write all calls as lines")
        else:
            self._json = [row[begins:]]
        return True

    def _scan(self, call: _OpenCall, row: str, at: int) -> None:
        """Read on in an open call, and what stands behind it if it ends in this row."""
        self._call = call
        self._broken = False
        try:
            end = call.arguments.take(row, at)
        except Unreadable as error:
            self._fail(call, str(error))
            return
        if end is None:
            return
        self._call = None
        if call.wrong:
            return
        wrong = self._behind(row[end:])
        if wrong:
            self._fail(call, wrong)
        else:
            self._made.add(call.number or 0, call.name, call.arguments, call.result)
            rest = row[end:].strip(_NOISE)
            if _END.fullmatch(rest):
                self._ended = True

    def _behind(self, rest: str) -> str:
        """Return what is wrong with the rest of a row behind a call: nothing if it is the
        plan's end or a comment.
        """
        text = without_frame(rest).strip(_NOISE)
        if not text or _END.fullmatch(text):
            return ""
        if _COMMENT.match(text) and not self._mentioned(text):
            return _condition_in(text)
        if _NO_DEPENDENCIES.fullmatch(text):
            return ""
        if _ASIDE.match(text) and self._is_remark(text):
            return ""
        part = (
            "write one call a line, all arguments in its brackets, a comment behind #, and a part "
            "of its result"
        )
        return (
            f"{format_value(rest.strip())} stands behind the call; {part} in a later line, as "
            f"${{1.name}}"
        )

    def _is_remark(self, text: str) -> bool:
        """Whether words say no more than what a call is for."""
        words = re.sub(r"\A[\s\W]*", "", text).strip(" )]*_")
        if _CHANGES.search(words) or self._mentioned(text):
            return False
        return not any(sign.isdigit() for sign in words)

    def _fail(self, call: _OpenCall, wrong: str) -> None:
        self._call = None
        self._broken = True
        if not call.wrong:
            self._made.broken(call.number or 0, wrong)

    def _unclosed(self, call: _OpenCall) -> None:
        self._fail(
            call,
            f"{format_name(call.arguments.missing)} is missing at its end; close every quote and "
            "bracket",
        )

    def _mentioned(self, text: str) -> str:
        """Return the known tool or form that a text seems to call, "" if there is none."""
        for found in (*_CALL.finditer(text), *_NAMED.finditer(text)):
            known = self._known_in(found["name"])
            if not known:
                continue
            if found.re is _NAMED or not found["gap"] or _MEANT.match(text, found.end()):
                return known
        return ""

    def _known_in(self, name: str) -> str:
        """Return the first known tool or form that a name means, or a part of
        it; "" if there is none.
        """
        for part in (name, *re.split(r"[.-]", name)):
            known = self._made.known_call(part)
            if known:
                return known
        return ""

    def _words(self, text: str, *, is_remark: bool) -> None:
        """Take a row that is no line: a fence, the end of the plan, a comment, a
        thought, or other words.
        """
        text = without_frame(text)
        shown = format_value(text)
        number = None
        numbered = _NUMBERED.match(text)
        if numbered:
            number = int(numbered[1] or numbered[2])
        if not text.strip(_NOISE) or _FENCE.fullmatch(text):
            return
        if _END.fullmatch(text.strip(_NOISE)):
            self._ended = True
            return
        name = self._mentioned(text)
        if name:
            line = number
            if line is None:
                line = self._made.last + 1
            self._made.fail(
                f"{shown} looks like a call of {name}; write it as a line, {line}. {name}(...), "
                "or not at all"
            )
        elif _CROSSED.search(text):
            self._made.fail(
                f"{shown} may strike out lines or put them in a comment; write the lines of the "
                "plan alone"
            )
        elif is_remark and self._made.begun and self._is_remark(text):
            return
        elif _COMMENT.match(text) and not numbered:
            wrong = _condition_in(text)
            if wrong and self._made.begun and not self._ended:
                self._made.fail(wrong)
        elif not (self._ended or self._broken or _THOUGHT.match(text)):
            self._made.leave_out(number, shown)

    def _add(self, call: JsonCall) -> None:
        self._made.add(call.number, self._made.known_call(call.name) or call.name, call)

    def _read_json(self, text: str) -> None:
        try:
            if mark_of_call(text) == 0 or not begins_json(text):
                calls, behind = written_calls(text, self._made.tools)
                plan = None
            else:
                calls, plan, behind = calls_or_plan(text)
        except Unreadable as error:
            self._made.fail(f"the reply is no plan: {error}")
            return
        self._plan = plan
        for call in calls:
            self._add(call)
        nodes = self.plan.get("nodes")
        if self._plan is None:
            self._made.finish()
        elif not isinstance(nodes, list) or not nodes:
            self._made.fail(
                "the JSON holds no plan; it needs `calls`, a list of objects with `tool` and "
                "`arguments`"
            )
        if _END.fullmatch(behind.strip(_NOISE)):
            return
        if self._mentioned(behind) or mark_of_call(behind) is not None or _CROSSED.search(behind):
            self._made.fail(
                f"{format_value(behind)} stands behind the JSON; write all calls in one JSON object"
            )
        elif behind.strip(_NOISE):
            self._made.warn(f"{format_value(behind)} behind the JSON was left out")


def _condition_in(comment: str) -> str:
    """Return what is wrong with a comment that says when its line is to run, "" for
    any other: all lines run.
    """
    if _CONDITION.search(comment) is None:
        return ""
    shown = format_value(comment)
    return (
        f"{shown} sets a condition, and every line of a plan runs; leave out the line, or the "
        "comment"
    )
