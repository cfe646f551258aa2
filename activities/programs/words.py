"""The words of a script: from a call that it makes to a node of the plan, or to an answer at once.

A call has several names. Its *key* is its identity, by which equal work is found again: what it
calls, with which arguments, and its number among equal calls (`Words._key`). A write's number is
claimed in the store (`made_writes.py`). Its *id* is the name of its node (`Session.call_id`). Its
*call site* is where in the script it is made, for people (`cpython/names.py`).

Arguments are data: a `$` in them is text, and material for a model or a person never
becomes part of a prompt.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sennit.activities.limits import MAX_PROGRAM_CALLS
from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.programs.classes import Classes
from sennit.activities.programs.cpython.names import (
    BEGUN,
    BOUNDED,
    ENDED,
    JOINED,
    identity_of,
    shown_path,
    task_of,
    tasks_around,
)
from sennit.activities.programs.made_writes import Caution, Claimant, EqualWrites, WriteClaims
from sennit.activities.programs.material import (
    CallLimits,
    Refused,
    bound,
    made_node,
    millis_of,
    pieces,
    question_text,
    shortened,
    shown,
    sleep_for,
    sleep_until,
    task_budget,
    text_of,
    tool_arguments,
)
from sennit.activities.programs.reading import Unreadable
from sennit.activities.programs.schemas import Schema, schema_of
from sennit.activities.programs.session import Counts, OpenCall, Session, SessionSlice, Shape
from sennit.activities.programs.values import Call, Ended, NotJson, Ref, Sleep, mapped, packed
from sennit.activities.programs.write_order import WriteOrder
from sennit.activities.storage.artifacts import digest_of, encode, key_of
from sennit.activities.toolbox.read_output import PART, SLEEP
from sennit.workflows.plan.checking.calls import turn_rule_problems
from sennit.workflows.plan.compile.execution_plan import KEY_CHARACTERS
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.nodes import (
    AgentNode,
    GateNode,
    LlmNode,
    Node,
    ToolNode,
)
from sennit.workflows.plan.language.problems import no_such_tool
from sennit.workflows.plan.language.references import literal
from sennit.workflows.plan.language.text import format_name, format_names, nearest_or_known
from sennit.workflows.plan.limits import DEFAULT_WINDOW
from sennit.workflows.plan.programs.files import in_call_site, line_in_file, place_in
from sennit.workflows.plan.programs.vocabulary import ROLES, SILENCES, WORDS
from sennit.workflows.plan.scheduling.events import TASK_ENDS, TaskNews, TaskStatus

_MATERIAL = "material_"
_NOT_IN_A_PHASE = re.compile(r"[\s/#:\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run lets its scripts use: its script, the tools of its catalogue, the model providers,
    what its budget has left, the classes of the script, what tells the run from others, and how its
    writes are claimed. `bodies` are to be stored, by their digests. `limits` are those of the run's
    budget, and `task_left` says what tasks have left of theirs, by their ids. `slots` are those of
    activities, and `rate` is how many calls a minute the models of workers take; None where nobody
    has set it. `loads` has the calls that run and wait, by role. A script that a person `trusts`
    runs where the kernel cannot confine it, too.
    """

    script: str
    tools: dict[str, dict[str, Any]]
    providers: tuple[str, ...]
    left: dict[str, int] = field(default_factory=dict)
    classes: Callable[[], Classes] = dict
    run: str = ""
    claims: WriteClaims | None = None
    bodies: dict[str, bytes] = field(default_factory=dict)
    slots: int = DEFAULT_WINDOW
    rate: int | None = None
    is_trusted: bool = False
    loads: dict[str, dict[str, int | None]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    task_left: dict[str, dict[str, int]] = field(default_factory=dict)


class TaskLine(NamedTuple):
    """A task of the script, as people see it: what it is known by, its call site, and what it does.
    Its calls may spend its `slice`, and that of the task that it is a `slice_of`.
    """

    id: str
    key: str
    call_site: str
    summary: str
    slice: dict[str, int]
    slice_of: str


class WantedWrite(NamedTuple):
    """A write that a script has called: which writes are equal to it, and how many of
    them it has made before.
    """

    equal: EqualWrites
    before: int
    tool: str


class WordsStanding(NamedTuple):
    """How many nodes, calls that were given up, tasks and news of tasks there were."""

    nodes: int
    given_up: int
    tasks: int
    news: int


class Words:
    """Takes the calls that a session makes in one advance. `session` counts them;
    the rest is what is new.
    """

    def __init__(self, session: Session, counts: Counts, around: Surroundings) -> None:
        self.session = session
        self.nodes: list[Node] = []  # the new nodes. What follows is by their ids
        self.labels: dict[str, str] = {}  # what people read of each
        self.call_sites: dict[str, str] = {}  # where the script has made it, as `look#3/search:4`
        self.keys: dict[str, str] = {}  # what it is known by, whatever its id
        self.marks: dict[str, str] = {}  # what the scheduler knows it by
        self.materials: dict[str, dict[str, str]] = {}  # the digests of what it refers to
        # Those of its time, and of how many inputs it has open.
        self.limits: dict[str, dict[str, int]] = {}
        # What a model call may spend that has a budget of its own.
        self.slices: dict[str, dict[str, int]] = {}
        self.slice_of: dict[str, str] = {}  # the innermost task with a budget that it is in
        self.writes: dict[str, WantedWrite] = {}  # those that have not been claimed yet
        self.tasks: list[TaskLine] = []  # those of the script that have begun
        self.news: list[TaskNews] = []  # of tasks, in order
        # What a person has to know of a write before it is made.
        self.cautions: dict[str, Caution] = {}
        self.given_up: list[str] = []  # the calls that nobody waits for any more
        self.took = 0.0  # the seconds for which the script has run
        self.counts = counts
        self.around = around
        self.order = WriteOrder(session, around.claims, around.tools)
        self._skipped = dict.fromkeys(session.skipped)

    def standing(self) -> WordsStanding:
        """Return how far the script has come; `go_back` takes it."""
        return WordsStanding(len(self.nodes), len(self.given_up), len(self.tasks), len(self.news))

    def go_back(self, standing: WordsStanding) -> None:
        """Forget what the script has called since then."""
        by_node: tuple[dict[str, Any], ...] = (
            self.labels,
            self.call_sites,
            self.keys,
            self.marks,
            self.materials,
            self.limits,
            self.slices,
            self.slice_of,
            self.writes,
        )
        for node in self.nodes[standing.nodes :]:
            for facts in by_node:
                facts.pop(node.id, None)
        del self.nodes[standing.nodes :]
        del self.given_up[standing.given_up :]
        del self.tasks[standing.tasks :]
        del self.news[standing.news :]

    async def claim_writes(self) -> None:
        """Have each new write known by its number among equal ones, in the order in which
        the script has made them.

        Until then a write is known by its call, as everything else is. Raises StoreUnavailable.
        """
        wanted, self.writes = self.writes, {}
        claims = self.around.claims
        if claims is None or not wanted:
            return
        # Equal writes have numbers in the order of their calls, and those that differ need
        # not wait for each other.
        by_digest = dict[str, list[str]]()
        for name, write in wanted.items():
            by_digest.setdefault(write.equal.digest, []).append(name)

        async def claim(names: list[str]) -> None:
            for name in names:
                write = wanted[name]
                claimant = self._claimant(name)
                place = write.equal.digest[:16]
                held = self.session.numbers_of(place, write.before)
                number = await claims.claim(write.equal, claimant, held)
                numbers[name] = number
                self.session.hold(place, held, number)

        numbers = dict[str, int]()
        await asyncio.gather(*map(claim, by_digest.values()))

        # Only now it is known what the calls of this advance leave of what the
        # script before has written.
        for name, number in numbers.items():
            write = wanted[name]
            claimant = self._claimant(name)
            key = write.equal.key(number)
            caution = await claims.caution(write.equal, claimant, write.tool, number)
            if caution is None:
                caution = await self.order.caution(name, claimant, key)
            self.order.claim(name, key)
            if caution is not None:
                self.cautions[name] = caution

        # From now on the scheduler knows each write by that key, and so does the
        # script that waits for it.
        for name, number in numbers.items():
            key = wanted[name].equal.key(number)
            self.keys[name] = key
            self.marks[name] = key[:KEY_CHARACTERS]
        for place, made in self.session.open.items():
            if made.node in wanted:
                self.session.open[place] = made._replace(key=self.keys[made.node])

    def _claimant(self, name: str) -> Claimant:
        """Return who claims a write that has not been claimed yet."""
        session = self.session
        return Claimant(session.key, session.script, self.keys[name])

    def answer(self, call: Call) -> Ended | Sleep | None:
        """Return the answer to a call, or None if it is open now. Raises ProgramFailed."""
        try:
            limits, call = CallLimits.of(call, self.around.tools, self.around.limits)
            count = len(self.nodes)
            word = _WORDS.get(call.function)
            if word is None:
                made = self._tool(call, call.function, call.args, call.kwargs)
                self._wait(call, made)
                answer = None
            else:
                given = bound(word, self, call)
                answer = word(*given.args, **given.kwargs)
            if len(self.nodes) > count:
                self._limit(limits)
            return answer
        except Refused as refused:
            return Ended(error=(refused.kind, f"{call.function}: {refused}"))
        except NotJson as problem:
            return Ended(error=("TypeError", f"{call.function}: {problem}"))

    def _limit(self, limits: CallLimits) -> None:
        """Have the call that was added last have these limits."""
        node = self.nodes[-1]
        if limits.attempts:
            self.nodes[-1] = node.model_copy(update={"retry": limits.retry()})
        if limits.timeout:
            self.limits.setdefault(node.id, {})["expires"] = limits.timeout
        if limits.budget:
            self.slices[node.id] = limits.budget

    def _wait(self, call: Call, made: OpenCall) -> None:
        self.session.open[call.number] = made

    def _sleep(self, call: Call, seconds: float) -> Sleep:
        return sleep_for(seconds, call.clock, self.session.since)

    def _sleep_until(self, call: Call, time: str) -> Sleep:
        return sleep_until(time, call.clock)

    def wake(self, sleep: Sleep | None) -> None:
        """Have a node end when the next sleep does: one for all that are over at the same time."""
        if sleep is None or -sleep.due in self.session.open:
            return
        until = datetime.fromtimestamp(sleep.due / 1000, UTC).isoformat()
        call = Call(-sleep.due, "sleep", (), {}, sleep.line, sleep.coroutine)
        node = made_node(
            ToolNode, id=self._next, kind="tool", tool=SLEEP["name"], args={"until": until}
        )
        self.limits[node.id] = {"deadline": sleep.at}
        shown_time = until[:19].replace("T", " ")
        made = self._add(node, call, sleep.due, f"until {shown_time}")
        self._wait(call, made)

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
        turn: Any = None,
        messages: Sequence[dict[str, Any]] = (),
        instructions: str = "",
        media: Any = (),
        **settings: Any,
    ) -> None:
        # Arguments that no model call takes are refused first.
        silences = _silences_in(settings)
        given = _settings_in(settings)
        self._check_model(model)
        if role not in ROLES:
            raise Refused("ValueError", f"`role` is one of {format_names(ROLES)}, not {role!r:.40}")

        # Material is known by what it is, and the node refers to where it is stored.
        known = list[str]()
        digests = dict[str, str]()
        for number, value in enumerate(pieces(material), 1):
            known.append(value.digest if isinstance(value, Ref) else key_of(value))
            digests[f"{_MATERIAL}{number}"] = self._stored(value)

        # Optional arguments count in the key of the call only where they are given.
        fields: dict[str, Any] = {
            "role": role,
            "model": model,
            "output_schema": self._schema(schema),
            "tools": self._tools(tools),
            "max_turns": max_turns,
        }
        if given:
            fields["settings"] = given
        if turn is not None and turn != "all":
            fields["turn"] = turn
        if messages:
            fields["messages"] = messages
        if instructions:
            fields["instructions"] = instructions
        shown = _media_in(media)
        text = str(literal(text_of("prompt", prompt)))
        if digests:
            references = "\n".join(f"${name}" for name in digests)
            text = f"{text}\n\n{references}"
            self.materials[self._next] = digests
        key = [prompt, known, fields]
        if shown:
            key.append(packed(shown))

        # How long a model may be silent changes nothing of what the call is, so it
        # is no part of its key.
        fields = {**fields, **silences}
        if shown:
            fields["media"] = mapped(literal(shown), self._named)
        node = made_node(LlmNode, id=self._next, kind="llm", prompt=text, **fields)
        if node.turn_rule is not None:
            for problem in turn_rule_problems(node, ()):
                raise Refused("ValueError", f"`turn` {problem.message}")
        made = self._add_reader(node, call, key, prompt, tools)
        self._wait(call, made)

    def _check_model(self, model: Any) -> None:
        """Raise Refused for a model of a provider that the run does not have."""
        if not isinstance(model, str):
            return
        provider = model.partition(":")[0]
        if provider and provider not in self.around.providers:
            raise Refused("ValueError", f"there is no model {format_name(model)}")

    def _agent(
        self,
        call: Call,
        goal: str,
        tools: Sequence[str] | None = None,
        budget: dict[str, Any] | None = None,
        workspace: Any = None,
    ) -> None:
        allowed = self._tools(tools) if tools is not None else None
        text = literal(text_of("goal", goal))
        key = [goal, allowed, budget]
        fields: dict[str, Any] = {"goal": text, "tools": allowed, "budget": budget}
        if workspace is not None:
            fields["workspace"] = workspace
            key.append(workspace)
        node = made_node(AgentNode, id=self._next, kind="agent", **fields)
        usable: Iterable[str] = self.around.tools if allowed is None else allowed
        made = self._add_reader(node, call, key, goal, usable)
        self._wait(call, made)

    def _ask(self, call: Call, question: str, *material: Any, schema: Any = None) -> None:
        parts = pieces(material)
        form = self._schema(schema)
        texts: list[Any] = []
        names = list[str]()
        for value in parts:
            if isinstance(value, Ref):
                names.append(self._named(value))
            else:
                texts.append(value)
        asked = question_text(text_of("question", question), texts, names)
        node = made_node(GateNode, id=self._next, kind="gate", question=asked, schema=form)
        what = [question, packed(parts), form]
        made = self._add(node, call, what, question)
        self._wait(call, made)

    def _tool(self, call: Call, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> OpenCall:
        tool = self.around.tools.get(name)
        if tool is None:
            known = [*self.around.tools, *WORDS]
            raise Refused(
                "NameError", f"name '{name}' is not defined{nearest_or_known(name, known)}"
            )
        arguments = tool_arguments(tool.get("schema") or {}, args, kwargs)
        node_arguments = mapped(literal(arguments), self._named)
        node = made_node(ToolNode, id=self._next, kind="tool", tool=name, args=node_arguments)
        shape: Shape = "ref" if tool.get("large") else ""
        what = packed(arguments)
        effect = self._effect(name)
        reads = effect == "read"
        made = self._add(
            node, call, what, shown(arguments), function=name, shape=shape, reads=reads
        )
        if effect == "write":
            made = made._replace(writes=True)
            equal = EqualWrites.of(self.session.key, name, what)
            self.order.call(node, task_of(call.coroutine), call.clock)
            before = self.counts.next(equal.digest[:16]) - 1
            self.writes[node.id] = WantedWrite(equal, before, name)
        return made

    def _part(self, call: Call, ref: Any, a: int = 0, b: int | None = None) -> None:
        if not (isinstance(ref, Ref) and _is_place(a) and _is_place(b)):
            raise Refused(
                "TypeError",
                "takes a Ref, which is the result of a large tool, and two places in it",
            )
        args = {"output": self._named(ref), "from": a, "to": b}
        node = made_node(ToolNode, id=self._next, kind="tool", tool=PART["name"], args=args)
        end = "" if b is None else b
        made = self._add(node, call, [ref.digest, a, b], f"{a} {end}")
        self._wait(call, made)

    def _bounded(self, _call: Call, budget: Any) -> Ended:
        """Say whether a task of the script may have this budget, before the task begins."""
        try:
            task_budget(budget, self.around.limits)
        except Refused as refused:
            return Ended(error=(refused.kind, f"task: {refused}"))
        return Ended()

    def _begun(self, call: Call, site: str, about: str, budget: Any = None) -> Ended:
        """Note that a task of the script has begun."""
        self._check_room(call)
        limits = task_budget(budget, {}) if budget is not None else {}
        around = self._slice_at(call.coroutine)
        self.session.made += 1
        name = self.session.call_id(self.session.made)
        self.session.tasks[call.number] = name
        path = shortened(self._path(site))
        key = key_of([self.session.key, "task", identity_of(site)])
        place = f"{path}:{self._line(call)}"
        summary = f"{name} {place} {about}"
        self.tasks.append(TaskLine(name, key[:KEY_CHARACTERS], place, summary, limits, around))
        if limits:
            self.session.slices[site] = SessionSlice(name, limits, around)
        self.news.append(TaskNews(name, "running", call.clock))
        self.order.begun(call.number, task_of(site), task_of(call.coroutine), call.clock)
        return Ended()

    def _ended(self, call: Call, number: int, status: TaskStatus, error: str) -> Ended:
        """Note how a task of the script has ended."""
        tasks = self.session.tasks
        if number in tasks and status in TASK_ENDS:
            self.news.append(TaskNews(tasks[number], status, call.clock, error))
            ended = tasks.pop(number)
            running = dict[str, SessionSlice]()
            for site, its in self.session.slices.items():
                if its.task != ended:
                    running[site] = its
            self.session.slices = running
        return Ended()

    def _slice_at(self, site: str) -> str:
        """Return the innermost task with a budget that a call site is in, "" for none."""
        slices = self.session.slices
        if not slices:
            return ""
        for task in tasks_around(site):
            if task in slices:
                return slices[task].task
        return ""

    def _left(self, call: Call) -> dict[str, int]:
        """Return what a call may spend: of each limit the least that the run and the
        tasks around it have left.
        """
        left = dict(self.around.left)
        for site in tasks_around(call.coroutine):
            its = self.session.slices.get(site)
            if its is None:
                continue
            task_left = self.around.task_left.get(its.task, its.limits)
            for name, rest in task_left.items():
                left[name] = min(rest, left.get(name, rest))
        return left

    def _joined(self, call: Call, numbers: list[int]) -> Ended:
        """Note that the script knows how these tasks have ended."""
        self.order.joined(numbers, task_of(call.coroutine), call.clock)
        return Ended()

    def _phase(self, _call: Call, name: str) -> Ended:
        text = text_of("name", name)
        shown_name = _NOT_IN_A_PHASE.sub("-", text).strip("-")
        return Ended(shown_name[:40])

    def _budget_left(self, call: Call) -> Ended:
        left = self._left(call)
        cost = None
        if "cost" in left:
            cost = round(left["cost"] / 1e6, 6)
        return Ended({"tokens": left.get("tokens"), "calls": left.get("calls"), "cost_usd": cost})

    def _width(
        self, call: Call, *, per_agent_calls: Any = 1, per_agent_tokens: Any = None
    ) -> Ended:
        """Return how many agents may run at once: the least of the slots, of what the
        budget has left for so many calls and tokens each, and of what the rate serves
        within a minute; at least 1.
        """
        calls = _count("per_agent_calls", per_agent_calls)
        left = self._left(call)
        bounds = [self.around.slots]
        if "calls" in left:
            bounds.append(left["calls"] // calls)
        if per_agent_tokens is not None:
            tokens = _count("per_agent_tokens", per_agent_tokens)
            tokens_left = left.get("tokens", tokens * self.around.slots)
            bounds.append(tokens_left // tokens)
        if self.around.rate is not None:
            bounds.append(self.around.rate // calls)
        return Ended(max(1, min(bounds)))

    def _load(self, _call: Call, role: Any = "worker") -> Ended:
        if role not in ROLES:
            raise Refused("ValueError", f"`role` is one of {format_names(ROLES)}, not {role!r:.40}")
        return Ended(self.around.loads.get(role, {"running": 0, "backlog": None}))

    @property
    def _next(self) -> str:
        _, stem = self.session.stems[-1]
        return f"{stem}_{self.session.made + 1}"

    def _check_room(self, call: Call) -> None:
        if self.session.made >= MAX_PROGRAM_CALLS:
            last = line_in_file(self.around.script, call.line)
            raise ProgramFailed(
                f"over {MAX_PROGRAM_CALLS:,} calls, the last on {last}: a program makes no more"
            )

    def _add(
        self,
        node: Node,
        call: Call,
        what: Any,
        shown: str,
        *,
        function: str = "",
        shape: Shape = "",
        reads: bool = False,
    ) -> OpenCall:
        """Add a node that was made for a call with `what`. It may `read`
        what writes have changed.
        """
        self._check_room(call)
        name = function or call.function
        key = self._key(name, what, call.writes if reads else 0)
        self.keys[node.id] = key
        self.marks[node.id] = key[:KEY_CHARACTERS]
        around = self._slice_at(call.coroutine)
        if around:
            self.slice_of[node.id] = around
        path = shortened(self._place(call, name))
        self._enter(node, f"{path}:{self._line(call)}", shown)
        return OpenCall(node.id, key, shape)

    def _add_reader(
        self, node: Node, call: Call, what: Any, shown: str, tools: Iterable[str]
    ) -> OpenCall:
        """Add a model call or an agent. It reads if it has tools, unless one of them writes:
        then it is known as a write is, for made again it would write again, and what is read
        behind it may have changed.
        """
        effects = [self._effect(name) for name in tools]
        writes = "write" in effects
        reads = bool(effects) and not writes
        made = self._add(node, call, what, shown, reads=reads)
        return made._replace(writes=writes)

    def _effect(self, tool: str) -> str:
        """Return what a tool does: it writes if nothing is said."""
        effect: str = self.around.tools[tool].get("effect", "write")
        return effect

    def _line(self, call: Call) -> int | str:
        place = place_in(self.around.script, call.line)
        return in_call_site(place) if isinstance(place, str) else place

    def _path(self, site: str) -> str:
        """Return a call site as people read it: in which tasks, phases and
        coroutines of the script it is.
        """
        return shown_path(site)

    def _place(self, call: Call, name: str) -> str:
        """Return where a call stands."""
        is_timeout = call.coroutine.rpartition("/")[2].startswith("__ring#")
        word = "timeout" if is_timeout else name
        path = self._path(call.coroutine)
        return f"{path}/{word}" if path else word

    def _enter(self, node: Node, place: str, about: str) -> None:
        self.session.made += 1
        self.nodes.append(node)
        self.call_sites[node.id] = place
        self.labels[node.id] = f"{place} {about}"

    def _key(self, function: str, what: Any, writes: int) -> str:
        """Return what a call is known by, wherever a script makes it: what it calls, and its
        number among equal calls.

        A read is never taken for an equal one in front of a write: it is equal only
        behind as many `writes`.
        """
        parts = [function, what]
        if writes:
            parts.append(writes)
        called = key_of(parts)
        while True:
            number = self.counts.next(called[:16])
            key = key_of([self.session.key, called, number])
            if key[:KEY_CHARACTERS] not in self._skipped:
                return key

    def _named(self, ref: Ref) -> str:
        """Return a reference for the next node, by which it has what a Ref names."""
        materials = self.materials.setdefault(self._next, {})
        for known, digest in materials.items():
            if digest == ref.digest:
                return f"${known}"
        name = f"{_MATERIAL}{len(materials) + 1}"
        materials[name] = ref.digest
        return f"${name}"

    def _stored(self, value: Any) -> str:
        if isinstance(value, Ref):
            return value.digest
        body = encode(value)
        digest = digest_of(body)
        self.around.bodies[digest] = body
        return digest

    def _schema(self, written: Any) -> Schema | None:
        if written is None:
            return None
        try:
            return schema_of(written, self.around.classes())
        except (ValueError, Unreadable) as error:
            raise Refused("ValueError", str(error)) from None

    def _tools(self, names: Any) -> tuple[str, ...]:
        are_names = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not are_names:
            raise Refused("TypeError", "`tools` is a list of the names of tools")
        for name in names:
            if name not in self.around.tools:
                raise Refused("ValueError", no_such_tool(name, self.around.tools))
        return tuple(names)


def _silences_in(settings: dict[str, Any]) -> dict[str, str]:
    """Return how long a model may be silent, as a node has it. Raises
    Refused for what is no time.
    """
    silences = dict[str, str]()
    for name in SILENCES:
        if settings.get(name) is not None:
            silences[name] = f"{millis_of(name, settings[name])}ms"
    return silences


def _settings_in(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a script has chosen for a model call, without how long the model may
    be silent. Raises Refused for an argument that is none.
    """
    given = dict[str, Any]()
    for name, value in settings.items():
        if name in SILENCES:
            continue
        if name not in CallSettings.model_fields:
            raise Refused("TypeError", f"got an unexpected keyword argument {name!r}")
        if value is not None:
            given[name] = value
    return given


def _is_place(value: Any) -> bool:
    """Whether a value can be where a part of a result begins or ends."""
    return value is None or type(value) is int


def _media_in(given: Any) -> list[Any]:
    """Return what a model is to be shown. Raises Refused for what is neither one
    thing nor a list of them.
    """
    if isinstance(given, dict | Ref):
        return [given]
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        raise Refused(
            "TypeError", f"`media` is a result to show, or a list of them, not {given!r:.40}"
        )
    return list(given)


def _count(name: str, value: Any) -> int:
    """Return a whole number above 0. Raises Refused for anything else."""
    if type(value) is not int or value < 1:
        raise Refused("ValueError", f"`{name}` is a whole number from 1 on, not {value!r:.20}")
    return value


_WORDS: dict[str, Callable[..., Ended | Sleep | None]] = {
    "llm": Words._llm,
    "agent": Words._agent,
    "ask": Words._ask,
    "part": Words._part,
    "sleep": Words._sleep,
    "sleep_until": Words._sleep_until,
    "phase": Words._phase,
    "budget_left": Words._budget_left,
    "width": Words._width,
    "load": Words._load,
    BEGUN: Words._begun,
    ENDED: Words._ended,
    JOINED: Words._joined,
    BOUNDED: Words._bounded,
}
