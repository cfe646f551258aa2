"""The plan under construction. Each line becomes its node at once, from the lines above it."""

import re
from collections.abc import Collection, Sequence

from workflows.plan.language.nodes import RESERVED_IDS
from workflows.plan.language.references import references_in
from workflows.plan.language.text import format_value, printable
from workflows.plan.planner_format.call_text import CallText
from workflows.plan.planner_format.calls import Context, Node, NoResults, Tools, call_name, node_of
from workflows.plan.planner_format.json_calls import JsonCall
from workflows.plan.planner_format.line_references import resolve
from workflows.plan.planner_format.values import Arguments, CallError, Scope, arguments_of, parse_call

_LONGEST_CYCLE = 20
_QUOTED_CALL = re.compile(r"(?<!\w)([A-Za-z_][\w.-]{0,79}+)\s*+[(\uff08][\"'\u201c]", re.ASCII)
_HASH = re.compile(r"#([A-Za-z]\w{0,39})", re.ASCII)


class PlanBuilder:
    """`known` and `gathered` as in `LineReader`; `writes` are tools whose result nobody needs to use."""

    def __init__(self, tools: Tools, known: Sequence[str], gathered: Sequence[str], writes: Collection[str]) -> None:
        self.tools = tools
        self.nodes: list[Node] = []
        self.answer = ""
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.sound: int | None = None
        """How many nodes were read before the first error; None without one."""
        self.last = max((int(found[1]) for name in known if (found := re.fullmatch(r"n(\d{1,9})", name))), default=0)
        self.read: dict[tuple[str, str], None] = {}
        self._writes = writes
        self._known = dict.fromkeys(known)
        self._ids: dict[int, str] = {}
        self._lines: dict[int, tuple[str, str]] = {}
        self._broken: dict[int, int | None] = {}
        self._left_out: dict[int, str] = {}
        self._results: dict[str, int] = {}
        self._loose = dict.fromkeys(gathered)

    def warn(self, text: str) -> None:
        self.warnings.append(printable(text))

    def fail(self, text: str) -> None:
        """Tell that the plan is not whole."""
        self.sound = len(self.nodes) if self.sound is None else self.sound
        self.errors.append(printable(text))

    def known_call(self, name: str) -> str:
        """Return the tool or form that a name means, or ""."""
        return call_name(name, self.tools)

    @property
    def begun(self) -> bool:
        return bool(self._lines)

    def leave_out(self, number: int, text: str) -> None:
        """Remember that a line with that number is no call."""
        self._left_out[number] = text

    def broken(self, number: int, text: str) -> None:
        """Tell what is wrong with a line."""
        self.last = max(self.last, number)
        self._lines.setdefault(number, ("", ""))
        self._broken.setdefault(number, None)
        self.fail(f"line {number}: {text}")

    def add(self, number: int, name: str, arguments: CallText | JsonCall, result: str = "") -> None:
        """Make the node of a whole call, if all that it refers to stands above."""
        call = (name, arguments.source)
        if self._lines.get(number) == call:  # the model has written its plan twice
            return
        if number in self._lines:
            self.fail(f"line {number} is there twice; give each line a number of its own")
            return
        self._lines[number], self.read[call] = call, None
        self.last = max(self.last, number)
        scope = Scope(self.known_call, self._results, lambda text: self._resolve(text, number))
        context = Context(scope, self.tools, self._loose)
        try:
            made = node_of(name, f"n{number}", self._given(name, arguments, context), context)
        except CallError as error:
            self._refuse(number, error)
            return
        if result and result not in RESERVED_IDS:
            self._results[result] = number
        self._take(number, made)

    def _given(self, name: str, arguments: CallText | JsonCall, context: Context) -> Arguments:
        if isinstance(arguments, JsonCall):
            return arguments.given(context)
        if name != "map" and (inner := [text for text in arguments.quoted if self._holds_call(text)]):
            hint = "close the quotes before it, or put the text in triple quotes"
            raise CallError(f"{format_value(inner[0])} holds a call; {hint}")
        return arguments_of(parse_call(arguments.python), context.scope, may_call=name == "map")

    def _refuse(self, number: int, error: CallError) -> None:
        """Keep what is wrong with a line, unless it is only that another is wrong."""
        self._broken[number] = error.line
        if str(error) and not (isinstance(error, NoResults) and self.errors):
            self.broken(number, str(error))

    def _name_cycles(self) -> None:
        """Say where lines wait for each other, which is known only now that all of them are there."""
        for index, text in enumerate(self.errors):
            found = re.match(r"line (\d+): it refers to", text)
            path = [int(found[1])] if found else []
            while path and path[-1] not in path[:-1] and len(path) <= _LONGEST_CYCLE:
                path.append(self._broken.get(path[-1]) or 0)
            if path and path[0] == path[-1]:
                cycle = " needs ".join(f"line {number}" for number in path)
                self.errors[index] = f"line {path[0]}: a cycle: {cycle}; take one of these references out"

    def _holds_call(self, text: str) -> bool:
        """Whether a text holds what looks like a call, which a missing quote may have put there."""
        return any(self.known_call(found[1]) for found in _QUOTED_CALL.finditer(text))

    def _resolve(self, text: str, number: int) -> str:
        if self._results:  # `#E1` for `E1 = ...`
            text = _HASH.sub(lambda found: f"${found[1]}" if found[1] in self._results else found[0], text)
        return resolve(text, self._id, lambda what: self.warn(f"line {number}: {what}"))

    def _id(self, name: str) -> str | None:
        """Return the node of a line above, by its number, its node's id, or the name that its result was given."""
        number = self._results.get(name)
        if number is None and name.removeprefix("n").isdecimal():
            number = int(name.removeprefix("n"))
        if number is None or number in self._ids or f"n{number}" in self._known:
            return None if number is None else f"n{number}"
        if number in self._broken:
            raise CallError("", number)
        if number in self._left_out:
            raise CallError(f"it refers to ${number}, but line {number} is no call: {self._left_out[number]}")
        if not name.isdecimal():
            raise CallError(
                f"it refers to ${name}, and no line {number} stands above it; write that line first", number
            )
        return None

    def _take(self, number: int, made: Node) -> None:
        used = dict.fromkeys(reference.node for reference in references_in(made))
        used |= dict.fromkeys(made.get("needs", ()))
        for name in (*(name for name in used if name not in self._known), *made.get("inputs", ())):
            self._loose.pop(name, None)
        if made["kind"] == "llm" and "inputs" in made:
            self.answer = made["id"]
        self._ids[number] = made["id"]
        self._loose[made["id"]] = None
        self.nodes.append(made)

    def finish(self) -> None:
        """See that the plan has an end and that every result is used."""
        self._name_cycles()
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
                    f"line {number}: no line uses its result; write ${number} where it is needed, such as in the "
                    "answer, or leave the line out"
                )

    def _acts(self, node: Node) -> bool:
        """Whether a node may do something beside giving a result."""
        if node["kind"] == "map":
            return self._acts(node["do"])
        return node["kind"] == "agent" or bool(node.get("tools")) or node.get("tool") in self._writes
