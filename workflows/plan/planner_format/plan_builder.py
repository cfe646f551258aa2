"""The plan under construction. Each line becomes its node at once, from the lines above it."""

import re
from collections.abc import Collection, Sequence

from sennit.workflows.plan.language.nodes import RESERVED_IDS
from sennit.workflows.plan.language.references import references_in
from sennit.workflows.plan.language.text import printable
from sennit.workflows.plan.planner_format.call_text import CallText
from sennit.workflows.plan.planner_format.calls import Node, NoResults, call_name, node_of
from sennit.workflows.plan.planner_format.json_calls import JsonCall
from sennit.workflows.plan.planner_format.json_text import Unreadable
from sennit.workflows.plan.planner_format.line_references import resolve
from sennit.workflows.plan.planner_format.values import (
    Arguments,
    Scope,
    Tools,
    arguments_of,
    parse_call,
)

_BRACKETED = re.compile(r"(?<![\w\])}.])\[(\d{1,3})\]", re.ASCII)
"""A number in brackets, which may be a mark of a source, or be meant as the result of a line."""
_HASH = re.compile(r"#([A-Za-z]\w{0,39})", re.ASCII)


class PlanBuilder:
    """`known` and `gathered` as in `LineReader`; `writes` are tools whose
    result nobody needs to use.
    """

    def __init__(
        self, tools: Tools, known: Sequence[str], gathered: Sequence[str], writes: Collection[str]
    ) -> None:
        self.tools = tools
        self.nodes: list[Node] = []
        self.answer = ""
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.sound: int | None = None
        """How many nodes were read before the first error; None without one."""
        self.last = 0
        for name in known:
            line = re.fullmatch(r"n(\d{1,9})", name)
            if line:
                self.last = max(self.last, int(line[1]))
        self._writes = writes
        self._known = dict.fromkeys(known)
        self._ids: dict[int, str] = {}
        self._lines: set[int] = set()
        self._broken: set[int] = set()
        self._left_out: dict[int, str] = {}
        self._between = ""
        self._results: dict[str, int] = {}
        self._loose = dict.fromkeys(gathered)

    def warn(self, text: str) -> None:
        self.warnings.append(printable(text))

    def fail(self, text: str) -> None:
        """Tell that the plan is not whole."""
        if self.sound is None:
            self.sound = len(self.nodes)
        self.errors.append(printable(text))

    def known_call(self, name: str) -> str:
        """Return the tool or form that a name means, or ""."""
        return call_name(name, self.tools)

    @property
    def begun(self) -> bool:
        return bool(self._lines)

    def leave_out(self, number: int | None, text: str) -> None:
        """Leave out a row that is no call, with the number that it begins with.
        No line may follow it.
        """
        self.warn(f"{text} is no call and was left out")
        if number is not None:
            self._left_out.setdefault(number, text)
        if self.begun and not self._between:
            self._between = text

    def broken(self, number: int, text: str) -> None:
        """Tell what is wrong with a line."""
        self.last = max(self.last, number)
        self._lines.add(number)
        self._broken.add(number)
        self.fail(f"line {number}: {text}")

    def add(self, number: int, name: str, arguments: CallText | JsonCall, result: str = "") -> None:
        """Make the node of a whole call, if all that it refers to stands above."""
        if number in self._lines:
            self.fail(f"line {number} is there twice; give each line a number of its own")
            return
        if self.last and number <= self.last:
            self.fail(
                f"line {number} stands behind line {self.last}; write the lines in the order of "
                "their numbers"
            )
            return
        if self._between:
            self.fail(
                f"{self._between} stands between the lines; write nothing but lines from the "
                "first to the last"
            )
            self._between = ""
        self._lines.add(number)
        self.last = max(self.last, number)
        scope = Scope(self.known_call, self._results, self._resolve, self.tools, self._loose)
        try:
            given = self._arguments(name, arguments, scope)
            made = node_of(name, f"n{number}", given, scope)
        except Unreadable as error:
            self._refuse(number, error)
            return
        if result and result not in RESERVED_IDS:
            self._results[result] = number
        self._take(number, made)

    def _arguments(self, name: str, arguments: CallText | JsonCall, scope: Scope) -> Arguments:
        if isinstance(arguments, JsonCall):
            return arguments.as_arguments(scope)
        return arguments_of(parse_call(arguments.python), scope, may_call=name == "map")

    def _refuse(self, number: int, error: Unreadable) -> None:
        """Keep what is wrong with a line, unless it is only that another is wrong."""
        self._broken.add(number)
        if str(error) and not (isinstance(error, NoResults) and self.errors):
            self.broken(number, str(error))

    def _resolve(self, text: str) -> str:
        if self._results:  # `#E1` for `E1 = ...`
            text = _HASH.sub(self._hash_resolved, text)
        for found in _BRACKETED.finditer(text):
            number = found[1]
            if int(number) in self._ids:
                self.warn(
                    f"{found[0]} is taken as it is; the result of line {number} would be ${number}"
                )
        return resolve(text, self._id)

    def _hash_resolved(self, found: re.Match[str]) -> str:
        name = found[1]
        if name in self._results:
            return f"${name}"
        return found[0]

    def _id(self, name: str) -> str | None:
        """Return the node of a line above, by its number, its node's id, or the name
        that its result was given.
        """
        number = self._results.get(name)
        if number is None and name.removeprefix("n").isdecimal():
            number = int(name.removeprefix("n"))
        if number is None:
            return None
        if number in self._ids or f"n{number}" in self._known:
            return f"n{number}"
        if number in self._broken:
            raise Unreadable("")
        if number in self._left_out:
            raise Unreadable(
                f"it refers to ${number}, but line {number} is no call: {self._left_out[number]}"
            )
        if not name.isdecimal():
            raise Unreadable(
                f"it refers to ${name}, and no line {number} stands above it; write that line first"
            )
        return None

    def _take(self, number: int, made: Node) -> None:
        used: dict[str, None] = {}
        for reference in references_in(made):
            used[reference.node] = None
        used |= dict.fromkeys(made.get("needs", ()))
        for name in used:
            if name not in self._known:
                self._loose.pop(name, None)
        for name in made.get("inputs", ()):
            self._loose.pop(name, None)
        if made["kind"] == "llm" and "inputs" in made:
            self.answer = made["id"]
        self._ids[number] = made["id"]
        self._loose[made["id"]] = None
        self.nodes.append(made)

    def finish(self, *, numbered: bool | None = None) -> None:
        """See that the plan has an end and that every result is used. If its lines are `numbered`,
        all numbers have to be lines, and if they are not, no row may have one.
        """
        if self.begun and numbered is not None:
            self._judge_left_out(numbered=numbered)
        if self._between and not self.answer:
            self.fail(
                f"{self._between} stands behind the lines; write the answer as the last line, and "
                "nothing else"
            )
        if self.errors:
            return
        if not self.nodes:
            self.fail('the reply holds no plan; write numbered calls, such as 1. search("...")')
            return
        loose = [node for node in self.nodes if node["id"] in self._loose]
        if not self.answer and len(loose) == 1 and loose[0]["kind"] == "llm":
            self.answer = loose[0]["id"]
        elif not self.answer:
            self.warn("the plan has no answer line; one was added")
            self.add(self.last + 1, "answer", CallText())
            return
        for node in loose:
            if node["id"] != self.answer and not self._acts(node):
                number = node["id"].removeprefix("n")
                self.fail(
                    f"line {number}: no line uses its result; write ${number} where it is needed, "
                    "such as in the answer, or leave the line out"
                )

    def _judge_left_out(self, *, numbered: bool) -> None:
        for number, text in self._left_out.items():
            if not numbered:
                self.fail(
                    f"{text} has a number, and the lines have none; give each line its number"
                )
            elif number not in self._lines:
                self.fail(
                    f"line {number}, {text}, is no call; write {number}. name(...) or leave it out"
                )

    def _acts(self, node: Node) -> bool:
        """Whether a node may do something beside giving a result."""
        if node["kind"] == "map":
            return self._acts(node["do"])
        if node["kind"] == "agent" or node.get("tools"):
            return True
        return node.get("tool") in self._writes
