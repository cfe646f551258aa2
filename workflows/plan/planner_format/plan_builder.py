"""Makes the nodes of a planner's numbered calls. A node comes after all that it refers to, whatever order their lines
have; only those that wait for each other, or for a line that never comes, come at the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from workflows.plan.language.references import references_in
from workflows.plan.language.text import printable
from workflows.plan.planner_format.calls import FORMS, Node, Tools, node_of
from workflows.plan.planner_format.line_references import numbers_in, with_ids
from workflows.plan.planner_format.literals import Arguments, CallError, read_arguments
from workflows.plan.planner_format.tokens import Tokens


@dataclass(frozen=True, slots=True)
class LineNode:
    """A node. Those it refers to came before it, unless they wait for each other."""

    node: Node


@dataclass(frozen=True, slots=True)
class LineWarning:
    """Text that was left out, or taken as it stands; the sentence names its line where it has one."""

    text: str


@dataclass(frozen=True, slots=True)
class LineError:
    """A line that can be no node; the sentence names it and says why."""

    text: str


Event = LineNode | LineWarning | LineError


@dataclass(slots=True, eq=False)
class NumberedCall:
    """A line on its way to a node; `waits` counts the lines it refers to that have not come yet."""

    number: int
    name: str
    twice: bool
    tokens: Tokens = field(default_factory=Tokens)
    given: Arguments = field(default_factory=Arguments)
    waits: int = 0


class PlanBuilder:
    """The plan under construction. `last` is the highest number so far, `events` are those that nobody has read yet;
    `known` and `gathered` as in `LineReader`.
    """

    def __init__(self, tools: Tools, known: Sequence[str], gathered: Sequence[str]) -> None:
        self._tools = tools
        self._known = dict.fromkeys(known)
        self._seen: dict[int, None] = {}
        self._left: dict[int, None] = {}
        self._done: dict[int, None] = {}
        self._held: dict[NumberedCall, None] = {}
        self._waiting: dict[int, list[NumberedCall]] = {}
        self._loose = dict.fromkeys(gathered)
        self._failed = False
        self.last = 0
        self.nodes: list[Node] = []
        self.answer = ""
        self.events: list[Event] = []

    def warn(self, text: str) -> None:
        """Tell of text that is no part of the plan."""
        self.events.append(LineWarning(printable(text)))

    def fail(self, text: str) -> None:
        """Tell that the plan is not whole."""
        self._failed = True
        self.events.append(LineError(printable(text)))

    def is_name(self, name: str) -> bool:
        """Whether calls may have this name."""
        return name in self._tools or name in FORMS

    @property
    def begun(self) -> bool:
        """Whether there was any call."""
        return bool(self._seen)

    def has(self, number: int) -> bool:
        """Whether a line of that number has begun."""
        return number in self._seen

    def begin(self, number: int, name: str) -> NumberedCall:
        """Return a new call with that number, which references may mean from now on."""
        call = NumberedCall(number, name, number in self._seen)
        self._seen[number] = None
        self.last = max(self.last, number)
        return call

    def leave(self, number: int) -> None:
        """Remember that a line with that number is no call."""
        self._left[number] = None

    def take(self, call: NumberedCall) -> None:
        """Take a call that is closed. It becomes a node when all that it refers to have."""
        if call.twice:
            self.fail(f"line {call.number} is there twice; give each line a number of its own")
            return
        try:
            call.given = read_arguments(call.tokens.found)
        except CallError as error:
            self.fail(f"line {call.number}: {error}")
            return
        for number in _numbers(call):
            if number not in self._done and f"n{number}" not in self._known and number != call.number:
                self._waiting.setdefault(number, []).append(call)
                call.waits += 1
        if call.waits:
            self._held[call] = None
        else:
            self._make_all([call])

    def _make_all(self, calls: list[NumberedCall]) -> None:
        """Make these calls' nodes, and those of all that waited for no more than them."""
        for call in calls:
            self._held.pop(call, None)
            self._make(call)
            self._done[call.number] = None
            for other in self._waiting.pop(call.number, ()):
                other.waits -= 1
                if not other.waits and other in self._held:
                    calls.append(other)

    def _id(self, number: int) -> str | None:
        name = f"n{number}"
        return name if number in self._seen or name in self._known else None

    def _make(self, call: NumberedCall) -> None:
        """Make the nodes of a call whose references are settled."""
        where = f"line {call.number}"
        for number in _numbers(call):
            if self._id(number) is None and number in self._left:
                self.fail(f"{where} refers to ${number}, but line {number} is no call")
            elif self._id(number) is None:
                self.warn(f"{where}: there is no line {number}, so ${number} stays text")
        given = Arguments(with_ids(call.given.ordered, self._id), with_ids(call.given.by_name, self._id))
        try:
            made = node_of(call.name, f"n{call.number}", given, self._tools, self._loose)
        except CallError as error:
            self.fail(f"{where}: {error}")
            return
        self._add(made, [reference.node for reference in references_in([given.ordered, given.by_name])])

    def _add(self, made: Node, used: Iterable[str]) -> None:
        """Take a node that uses these; one that reads how others ended is the answer."""
        inputs = made.get("inputs", ()) if made["kind"] == "llm" else ()
        for name in (*(name for name in used if name not in self._known), *inputs):
            self._loose.pop(name, None)
        if inputs:
            self.answer = made["id"]
        self._loose[made["id"]] = None
        self.nodes.append(made)
        self.events.append(LineNode(made))

    def finish(self) -> None:
        """Take what still waits for lines that never came, and see that the plan has an end."""
        while self._held:
            self._make_all([next(iter(self._held))])
        if self._failed:
            return
        if not self.nodes:
            self.fail('the reply holds no plan; write numbered calls, such as 1. search("...")')
            return
        ends = [node for node in self.nodes if node["id"] in self._loose]
        if not self.answer and len(ends) == 1 and ends[0]["kind"] == "llm":
            self.answer = ends[0]["id"]
        elif not self.answer:
            self.warn("the plan has no answer line; one was added")
            self._add(node_of("answer", f"n{self.last + 1}", Arguments(), self._tools, self._loose), [])


def _numbers(call: NumberedCall) -> Iterable[int]:
    return dict.fromkeys(numbers_in([call.given.ordered, call.given.by_name]))
