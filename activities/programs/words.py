"""The words of a script: from a call that it makes to a node of the plan, or to an answer at once.

Arguments are data: a `$` in them is text, and material for a model or a person never becomes part of a prompt.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from activities.nodes.error_mapping import ProgramFailed
from activities.programs.interpreter import Call, Ended
from activities.programs.material import has_refs, pieces, question_text, shown
from activities.programs.schemas import Schema, schema_of
from activities.programs.session import MAX_CALLS, MAX_DEPTH, MAX_OPEN, Counts, OpenCall, Session, Shape
from activities.programs.values import NotJson, Ref, mapped, packed
from activities.storage.artifacts import digest_of, encode
from activities.toolbox.read_output import PART
from workflows.plan.compile.graph import KEY_CHARACTERS
from workflows.plan.language.json_schema import violations
from workflows.plan.language.nodes import (
    AgentNode,
    GateNode,
    JoinNode,
    LlmNode,
    Node,
    ProgramNode,
    Step,
    ToolNode,
)
from workflows.plan.language.problems import place_of
from workflows.plan.language.references import literal
from workflows.plan.language.text import format_name, format_names, nearest_or_known
from workflows.plan.programs.vocabulary import PLAIN, ROLES

_MATERIAL = "material_"
PATH_CHARACTERS = 60
"""With the longest id before it and the line behind it, less than the shortest summary has room for."""
_TOO_MANY = (
    f"more than {MAX_OPEN} calls are open at once; start tasks: "
    "`await parallel([task(search, query=query) for query in queries])`"
)


class _Refused(Exception):
    """What a script has called wrongly: it is raised in the script, with this type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run lets its scripts use: its script, the tools of its catalogue, the model providers, and what its budget
    has left.
    """

    script: str
    tools: dict[str, dict[str, Any]]
    providers: tuple[str, ...]
    left: dict[str, int] = field(default_factory=dict)


class Words:
    """Takes the calls that a session makes in one advance. `session` counts them; the rest is what is new.

    `nodes` are the new nodes, `labels` what people read of each, `keys` what a call is known by whatever its id, and
    `marks` what the scheduler knows it by. `materials` are the digests of what a node refers to, `bodies` what is to be
    stored. Values that were `recorded` are given again instead of new ones.
    """

    def __init__(self, session: Session, counts: Counts, around: Surroundings, recorded: Sequence[Any] = ()) -> None:
        self.session = session
        self.nodes: list[Node] = []
        self.labels: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.materials: dict[str, dict[str, str]] = {}
        self.bodies: dict[str, bytes] = {}
        self.counts = counts
        self.around = around
        self._recorded = list(recorded)

    def answer(self, call: Call) -> Ended | None:
        """Return the answer to a call, or None if it is open now. Raises ProgramFailed."""
        try:
            if len(self.session.open) >= MAX_OPEN and call.function not in _AT_ONCE:
                raise _Refused("RuntimeError", _TOO_MANY)
            word = _WORDS.get(call.function)
            if word is None:
                self._wait(call, self._tool(call, call.function, call.args, call.kwargs))
                return None
            bound = _bound(word, self, call)
            return word(*bound.args, **bound.kwargs)
        except _Refused as refused:
            return Ended(error=(refused.kind, f"{call.function}: {refused}"))
        except NotJson as problem:
            return Ended(error=("TypeError", f"{call.function}: {problem}"))

    def _wait(self, call: Call, made: OpenCall) -> None:
        self.session.open[call.number] = made

    def _llm(
        self,
        call: Call,
        prompt: str,
        *material: Any,
        schema: Any = None,
        role: str = "worker",
        model: str | None = None,
        tools: Sequence[str] = (),
        max_turns: int = 8,
    ) -> None:
        provider = model.partition(":")[0] if isinstance(model, str) else ""
        if provider and provider not in self.around.providers:
            raise _Refused("ValueError", f"there is no model {format_name(str(model))}")
        if role not in ROLES:
            raise _Refused("ValueError", f"`role` is one of {format_names(ROLES)}, not {role!r:.40}")
        digests = {f"{_MATERIAL}{number}": self._stored(value) for number, value in enumerate(pieces(material), 1)}
        places = "".join(f"\n${name}" for name in digests)
        fields = {
            "role": role,
            "model": model,
            "output_schema": self._schema(schema),
            "tools": self._tools(tools),
            "max_turns": max_turns,
        }
        text = f"{literal(_text('prompt', prompt))}{places and chr(10)}{places}"
        node = _node(LlmNode, id=self._next, kind="llm", prompt=text, **fields)
        self.materials |= {node.id: digests} if digests else {}
        self._wait(call, self._add(node, call, [prompt, list(digests.values()), fields], prompt))

    def _agent(
        self, call: Call, goal: str, tools: Sequence[str] | None = None, budget: dict[str, Any] | None = None
    ) -> None:
        allowed = self._tools(tools) if tools is not None else None
        text = literal(_text("goal", goal))
        node = _node(AgentNode, id=self._next, kind="agent", goal=text, tools=allowed, budget=budget)
        self._wait(call, self._add(node, call, [goal, allowed, budget], goal))

    def _ask(self, call: Call, question: str, *material: Any, schema: Any = None) -> None:
        given, form = pieces(material), self._schema(schema)
        texts = [value for value in given if not isinstance(value, Ref)]
        names = [self._named(value) for value in given if isinstance(value, Ref)]
        asked = question_text(_text("question", question), texts, names)
        node = _node(GateNode, id=self._next, kind="gate", question=asked, schema=form)
        self._wait(call, self._add(node, call, [question, packed(given), form], question))

    def _tool(self, call: Call, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> OpenCall:
        tool = self.around.tools.get(name)
        if tool is None:
            known = [*self.around.tools, *_WORDS]
            raise _Refused("NameError", f"name '{name}' is not defined{nearest_or_known(name, known)}")
        given = _arguments(tool.get("schema") or {}, args, kwargs)
        node = _node(ToolNode, id=self._next, kind="tool", tool=name, args=mapped(literal(given), self._named))
        shape: Shape = "ref" if tool.get("large") else ""
        return self._add(node, call, packed(given), shown(given), function=name, shape=shape)

    def _part(self, call: Call, ref: Any, a: int = 0, b: int | None = None) -> None:
        if not isinstance(ref, Ref) or not all(type(place) in (int, type(None)) for place in (a, b)):
            raise _Refused("TypeError", "takes a Ref, which is the result of a large tool, and two places in it")
        args = {"output": self._named(ref), "from": a, "to": b}
        node = _node(ToolNode, id=self._next, kind="tool", tool=PART["name"], args=args)
        self._wait(call, self._add(node, call, [ref.digest, a, b], f"{a} {'' if b is None else b}"))

    def _task(self, call: Call, function: str, /, **arguments: Any) -> Ended:
        tool = self.around.tools.get(function)
        if tool is not None and not tool.get("large"):
            self._tool(call, function, (), arguments)
        elif function in _WORDS:
            raise _Refused("TypeError", f"{function} is no task; write an `async def` that calls it")
        else:
            self._start(call, function, arguments)
        return Ended(self.session.ticket(self.session.made))

    def _start(self, call: Call, function: str, arguments: dict[str, Any], stages: tuple[str, ...] = ()) -> str:
        """Add the node of a task, and return its id."""
        session, name = self.session, ">".join(stages) or function
        self._check_room(call)
        if session.depth >= MAX_DEPTH:
            raise _Refused("RecursionError", f"tasks of tasks go {MAX_DEPTH} levels deep; this one is deeper")
        about, arguments = shown(arguments), packed(arguments)
        key = self._key(name, arguments)
        session.tasks[name] = count = session.tasks.get(name, 0) + 1
        path = "/".join(filter(None, (session.path, session.phase, f"{name}#{count}")))
        child = Session(
            script=session.script,
            function=function,
            stages=stages,
            arguments=arguments,
            key=key,
            path=path,
            depth=session.depth + 1,
        )
        begun = self._stored(child.model_dump(mode="json", exclude_defaults=True))
        node = ProgramNode(id=self._next, kind="program", step=Step(number=1, session=begun))
        self.marks[node.id] = f"{key[:KEY_CHARACTERS]}.{session.script[:KEY_CHARACTERS]}"
        self._enter(node, f"{_shortened(path)}:{call.line} {about}")
        return node.id

    def _parallel(self, call: Call, tickets: list[str]) -> Ended | None:
        return self._join(call, "all", tickets)

    def _settled(self, call: Call, tickets: list[str]) -> Ended | None:
        return self._join(call, "settled", tickets, "ends")

    def _first(self, call: Call, tickets: list[str]) -> Ended | None:
        return self._join(call, "first", tickets)

    def _quorum(self, call: Call, k: Any, tickets: Any) -> Ended | None:
        count = len(tickets) if isinstance(tickets, list) else 1
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= count:
            raise _Refused("ValueError", f"{k!r:.20} of {count} tickets can never end")
        return self._join(call, {"quorum": k}, tickets)

    def _pipeline(self, call: Call, items: Any, *stages: str) -> Ended | None:
        if not isinstance(items, list) or not stages:
            raise _Refused("TypeError", "write pipeline(items, stage, ...): a list, and functions of one argument")
        begun = [self._start(call, "pipeline", {"item": item}, stages) for item in items]
        return self._joined(call, "all", begun, [list(stages), packed(items)])

    def _join(self, call: Call, policy: Any, tickets: Any, shape: Shape = "tickets") -> Ended | None:
        if not isinstance(tickets, list):
            raise _Refused("TypeError", f"takes a list of tickets, not {tickets!r:.60}")
        try:
            nodes = [self.session.call_of(ticket) for ticket in tickets]
        except LookupError as error:
            message = f"takes tickets that task(...) has returned here; {error.args[0]!r:.60} is none"
            raise _Refused("ValueError", message) from None
        if len(dict.fromkeys(nodes)) < len(nodes):
            raise _Refused("ValueError", "a ticket is named twice")
        if not nodes and policy == "first":
            raise _Refused("ValueError", "there are no tickets")
        return self._joined(call, policy, nodes, tickets, shape)

    def _joined(self, call: Call, policy: Any, nodes: list[str], what: Any, shape: Shape = "tickets") -> Ended | None:
        if not nodes:
            return Ended([])
        node = _node(JoinNode, id=self._next, kind="join", inputs=tuple(nodes), policy=policy)
        self._wait(call, self._add(node, call, what, f"of {len(nodes)}", shape=shape))
        return None

    def _phase(self, _call: Call, name: str) -> Ended:
        self.session.phase = re.sub(r"[\s/#:]+", "-", _text("name", name)).strip("-")[:40]
        return Ended()

    def _budget_left(self, _call: Call) -> Ended:
        left = self.around.left
        amounts = {name: left.get(name) for name in ("tokens", "calls")}
        cost = round(left["cost"] / 1e6, 6) if "cost" in left else None
        value = self._recorded.pop(0) if self._recorded else {**amounts, "cost_usd": cost}
        self.session.noted.append(value)
        return Ended(value)

    @property
    def _next(self) -> str:
        return f"{self.session.stems[-1][1]}_{self.session.made + 1}"

    def _check_room(self, call: Call) -> None:
        if self.session.made >= MAX_CALLS:
            raise ProgramFailed(f"over {MAX_CALLS:,} calls, the last on line {call.line}; give a part of them to tasks")

    def _add(self, node: Node, call: Call, what: Any, shown: str, *, function: str = "", shape: Shape = "") -> OpenCall:
        """Add a node that was made for a call with `what`."""
        self._check_room(call)
        name = function or call.function
        key = self._key(name, what)
        if not isinstance(node, JoinNode):
            self.keys[node.id] = key
            self.marks[node.id] = key[:KEY_CHARACTERS]
        place = "/".join(filter(None, (self.session.path, self.session.phase, name)))
        self._enter(node, f"{_shortened(place)}:{call.line} {shown}")
        return OpenCall(node.id, key, shape)

    def _enter(self, node: Node, label: str) -> None:
        self.session.made += 1
        self.nodes.append(node)
        self.labels[node.id] = label

    def _key(self, function: str, what: Any) -> str:
        """Return what a call is known by, in any run of the script: an equal call in the same task has the next one."""
        called = digest_of(encode([function, what]))
        return digest_of(encode([self.session.key, called, self.counts.next(called[:16])]))

    def _named(self, ref: Ref) -> str:
        """Return a reference for the next node, by which it has what a Ref names."""
        own = self.materials.setdefault(self._next, {})
        name = next((name for name, digest in own.items() if digest == ref.digest), f"{_MATERIAL}{len(own) + 1}")
        own[name] = ref.digest
        return f"${name}"

    def _stored(self, value: Any) -> str:
        if isinstance(value, Ref):
            return value.digest
        body = encode(value)
        digest = digest_of(body)
        self.bodies[digest] = body
        return digest

    def _schema(self, written: Any) -> Schema | None:
        try:
            return schema_of(written, self.around.script) if written is not None else None
        except ValueError as error:
            raise _Refused("ValueError", str(error)) from None

    def _tools(self, names: Any) -> tuple[str, ...]:
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise _Refused("TypeError", "`tools` is a list of the names of tools")
        for name in names:
            if name not in self.around.tools:
                message = f"there is no tool {format_name(name)}{nearest_or_known(name, sorted(self.around.tools))}"
                raise _Refused("ValueError", message)
        return tuple(names)


_WORDS: dict[str, Callable[..., Ended | None]] = {
    "llm": Words._llm,
    "agent": Words._agent,
    "ask": Words._ask,
    "part": Words._part,
    "task": Words._task,
    "parallel": Words._parallel,
    "settled": Words._settled,
    "first": Words._first,
    "quorum": Words._quorum,
    "pipeline": Words._pipeline,
    "phase": Words._phase,
    "budget_left": Words._budget_left,
}
_AT_ONCE = (*PLAIN, "budget_left")
_SIGNATURES = {word: inspect.signature(word) for word in _WORDS.values()}


def _bound(word: Callable[..., Any], *given: Any) -> inspect.BoundArguments:
    words, call = given
    try:
        return _SIGNATURES[word].bind(words, call, *call.args, **call.kwargs)
    except TypeError as error:
        raise _Refused("TypeError", str(error)) from None


def _arguments(schema: Schema, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's arguments by name: those without one in the order of the schema."""
    names = list(schema.get("properties") or ())
    if len(args) > len(names):
        raise _Refused("TypeError", f"takes {len(names)} arguments, not {len(args)}")
    given = dict(zip(names, args, strict=False))
    if twice := [name for name in given if name in kwargs]:
        raise _Refused("TypeError", f"got two values for `{twice[0]}`")
    given |= kwargs
    known = [name for name, value in given.items() if not has_refs(value)]
    found = [
        f"{place_of(where)}: {sentence}" if where else sentence
        for where, sentence in violations(packed(given), schema)
        if not where or where[0] in known or where[0] not in given
    ]
    if found:
        raise _Refused("ValueError", "; ".join(found)[:500])
    return given


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Refused("TypeError", f"`{name}` is a text, not {value!r:.60}")
    return value


def _shortened(path: str) -> str:
    """Return the end of a path that is too long to be read: the innermost tasks tell calls apart."""
    if len(path) <= PATH_CHARACTERS:
        return path
    end = path[1 - PATH_CHARACTERS :]
    return "…" + end[max(end.find("/"), 0) :]


def _node(made: type[Any], /, **fields: Any) -> Any:
    try:
        return made.model_validate(fields)
    except ValidationError as error:
        found = [f"{place_of(entry['loc'])}: {entry['msg']}" for entry in error.errors()[:3]]
        raise _Refused("ValueError", "; ".join(found)) from None
