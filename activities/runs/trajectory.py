"""Notes what a run has called, once it is over, for the runs to come."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sennit.activities.limits import (
    MAX_CONVERSATION_BYTES,
    MAX_NOTED_CHARACTERS,
    MAX_NOTED_OUTPUT_BYTES,
    MAX_NOTED_OUTPUTS,
)
from sennit.activities.nodes.binding import parse_unit, written_at
from sennit.activities.runs.argument_sources import SourceTracer
from sennit.activities.storage.artifacts import BodyMissing, encode
from sennit.activities.storage.learned import LearnedStore, Marks
from sennit.activities.storage.run_context import ArtifactReader, RunContext, StoredPlan
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.messages.trajectory import CallEnded, NoteCall, Noted
from sennit.workflows.plan.figures.failures import class_of
from sennit.workflows.plan.language.nodes import ModelCall, Node, ToolCall
from sennit.workflows.plan.language.references import BindError, as_text, bind
from sennit.workflows.plan.learning.limits import MAX_GOAL_WORDS
from sennit.workflows.plan.learning.shapes import shape_of
from sennit.workflows.plan.learning.trajectory import NotedCall, Trajectory, keys_of

LearnChoice = Literal["off", "on", "full"]
"""Whether runs are noted, and whether with what they said."""
log = logging.getLogger("tools")


@dataclass(frozen=True, slots=True)
class RunNoter:
    """Notes runs in the store of this worker. With `keeps_values` what they said is kept too."""

    learned: LearnedStore
    library: ArtifactReader
    keeps_values: bool = False

    async def note(self, run_prefix: str, call: NoteCall) -> Noted:
        """Note a run. Safe to repeat. Raises StoreUnavailable; a run whose artifacts
        are gone is not noted.
        """
        namespace = run_prefix.rpartition("/")[0]
        marks = await self.learned.marks(namespace)
        try:
            run = await _NotedRun.load(self.library, run_prefix, call)
            # Where references tell the sources, nobody needs the values.
            if self.keeps_values or any(each.is_made for each in run.calls):
                await run.read_values(self.library, run_prefix)
        except BodyMissing as missing:
            log.info("run %s is not noted: %s", call.run, missing)
            return Noted()
        trajectory = await run.trajectory(marks)
        values = None
        if self.keeps_values:
            values = run.conversation(trajectory)
        await self.learned.note(namespace, call.tenant, trajectory, values)
        return Noted(calls=len(trajectory.calls))


class _NotedRun:
    """A run with all that tells of its calls: where each is written, and what they have
    returned, if values count.
    """

    def __init__(
        self, call: NoteCall, context: RunContext, plans: Mapping[str, StoredPlan]
    ) -> None:
        self._call = call
        self._context = context
        self._plans = plans
        self._keys = keys_of(context.catalogue)
        self.outputs: dict[int, Any] = {}
        self.arguments: dict[int, Any] = {}
        # Calls that Sennit makes for itself are no tools of the run.
        calls: list[CallEnded] = []
        for ended in call.calls:
            if self._name_of(ended) is not None:
                calls.append(ended)
        self.calls = tuple(calls)

    @classmethod
    async def load(cls, library: ArtifactReader, run_prefix: str, call: NoteCall) -> "_NotedRun":
        """Read what lies in the store of a run. Raises BodyMissing, StoreUnavailable."""
        context = await library.run_context(run_prefix, call.run_context)
        digests = [call.plan]
        digests += [ended.plan for ended in call.calls if ended.plan]
        plans: dict[str, StoredPlan] = {}
        for digest in dict.fromkeys(digests):
            plans[digest] = await library.plan(run_prefix, digest)
        return cls(call, context, plans)

    def _plan_of(self, call: CallEnded) -> StoredPlan:
        return self._plans[call.plan or self._call.plan]

    def _node_of(self, call: CallEnded) -> Node:
        """Return the node that has made a call: of an item of a map, as if its part
        of `do` were all of it.
        """
        return written_at(self._plan_of(call), parse_unit(call.node)).node

    def _work_of(self, call: CallEnded) -> Any:
        return written_at(self._plan_of(call), parse_unit(call.node)).work

    def _name_of(self, call: CallEnded) -> str | None:
        """Return the tool, or the role of the model; None for what is neither."""
        try:
            work = self._work_of(call)
        except (KeyError, BindError):  # an edit has taken its node away
            return None
        if isinstance(work, ModelCall):
            return work.role
        if isinstance(work, ToolCall) and work.tool in self._keys:
            return work.tool
        return None

    async def read_values(self, library: ArtifactReader, run_prefix: str) -> None:
        """Read outputs, in the order of the calls, as far as values are compared; and the arguments
        of those calls that have only values.
        """
        names: dict[str, Any] = {}
        room = MAX_NOTED_OUTPUT_BYTES
        for number, call in enumerate(self.calls):
            node = self._node_of(call)
            plan = self._plan_of(call)
            own = {"goal": plan.goal, "input": plan.inputs}
            materials = plan.materials.get(node.id, {})
            for name, digest in materials.items():
                _, own[name] = await self._sized(library, run_prefix, digest)
            written = _written(self._work_of(call))
            self.arguments[number] = _bound(written, {**names, **own})
            if call.ref and number < MAX_NOTED_OUTPUTS and room > 0:
                stored, value = await self._sized(library, run_prefix, call.ref)
                self.outputs[number] = value
                names[call.node] = value
                room -= stored

    async def _sized(
        self, library: ArtifactReader, run_prefix: str, reference: str
    ) -> tuple[int, Any]:
        """Return how many bytes are stored of a value, and the value; None for one that is gone."""
        try:
            return await library.sized(run_prefix, reference)
        except (BodyMissing, BindError):
            return 0, None

    async def trajectory(self, marks: Marks) -> Trajectory:
        """Return what is kept of the run in any case: no value of it. Other
        activities go on meanwhile.
        """
        plan = self._plans[self._call.plan]
        tracer = SourceTracer(self.calls, plan, marks)
        noted = []
        first = min((call.began for call in self.calls), default=0)
        for number, call in enumerate(self.calls):
            await asyncio.sleep(0)  # to compare thousands of values takes milliseconds
            noted.append(self._noted(number, call, tracer, first))
            if call.is_made:
                tracer.know(number, "argument", self.arguments.get(number))
            if number in self.outputs:
                tracer.know(number, "output", self.outputs[number])
        return Trajectory(
            run=self._call.run,
            status=self._call.status,
            ended=max(0, self._call.ended),
            calls=tuple(noted),
            left_out=self._call.left_out,
            words=marks.words(self._context.goal or plan.goal, MAX_GOAL_WORDS),
            plan=shape_of(plan.plan, self._keys),
        )

    def _noted(self, number: int, call: CallEnded, tracer: SourceTracer, first: int) -> NotedCall:
        node = self._node_of(call)
        work = self._work_of(call)
        name = self._name_of(call) or ""
        kind: Literal["tool", "model"] = "model"
        version = ""
        model = ""
        if isinstance(work, ToolCall):
            kind = "tool"
            version = self._keys.get(name, "").partition("@")[2]
        elif isinstance(work, ModelCall):
            of_role = self._context.models.get(name) or [""]
            model = work.model or of_role[0]

        # A call that a program has made has only values; one of the plan says
        # itself where they come from.
        if call.is_made and isinstance(work, ToolCall):
            traced = tracer.of_made(number, self.arguments.get(number))
        else:
            traced = tracer.of_written(number, node, parse_unit(call.node))
        failure = ""
        if call.error:
            failure = class_of(call.error)
        return NotedCall(
            name=name,
            kind=kind,
            version=version,
            model=model[:200],
            began=max(0, call.began - first),
            millis=call.millis,
            took=call.took,
            attempts=call.attempts,
            tokens=call.tokens,
            failure=failure,
            sources=tuple(traced.sources),
            uses=tuple(traced.uses),
            after=tuple(tracer.after(number, node, traced)),
        )

    def conversation(self, run: Trajectory) -> bytes | None:
        """Return the run as one conversation in the form that chat models are trained with, without
        the secrets of this worker; None if it is too long to be kept.

        Calls that waited for nothing of each other stand in one turn. `dependencies`
        are those of each call.
        """
        goal = {"role": "user", "content": mask(self._context.goal)}
        messages: list[dict[str, Any]] = [goal]
        for layer in _layers(run.calls):
            tools = [number for number in layer if run.calls[number].kind == "tool"]
            if not tools:
                continue
            asked = [self._asked(number) for number in tools]
            messages.append({"role": "assistant", "content": None, "tool_calls": asked})
            for number in tools:
                messages.append(self._answered(number))
        answering = self._plans[self._call.plan].answering
        for number, call in enumerate(self.calls):
            if call.node == answering and number in self.outputs:
                messages.append({"role": "assistant", "content": _text(self.outputs[number])})
        conversation = {
            "run": run.run,
            "status": run.status,
            "messages": messages,
            "tools": self._tools_used(run),
            "dependencies": self._dependencies(run),
        }
        body = encode(conversation)
        if len(body) > MAX_CONVERSATION_BYTES:
            return None
        return body

    def _tools_used(self, run: Trajectory) -> list[dict[str, Any]]:
        used = {call.name for call in run.calls if call.kind == "tool"}
        functions: list[dict[str, Any]] = []
        for entry in self._context.catalogue:
            if entry["name"] in used:
                functions.append(_function(entry))
        return functions

    def _dependencies(self, run: Trajectory) -> dict[str, list[str]]:
        """Return for each call the calls that it waited for, by their nodes."""
        edges: dict[str, list[str]] = {}
        for call, noted in zip(self.calls, run.calls, strict=False):
            sources = (*noted.uses, *noted.after)
            edges[call.node] = [self.calls[earlier].node for earlier in sources]
        return edges

    def _asked(self, number: int) -> dict[str, Any]:
        arguments = json.dumps(mask(self.arguments[number]), ensure_ascii=False)
        function = {"name": self._name_of(self.calls[number]), "arguments": arguments}
        return {"id": self.calls[number].node, "type": "function", "function": function}

    def _answered(self, number: int) -> dict[str, Any]:
        call = self.calls[number]
        text = f"error: {call.error}"
        if not call.error:
            text = _text(self.outputs.get(number))
        return {"role": "tool", "tool_call_id": call.node, "content": text}


def _written(work: Any) -> Any:
    """Return what a call is given, as the plan has it: the arguments of a tool,
    the prompt of a model.
    """
    if isinstance(work, ToolCall):
        return work.args
    return getattr(work, "prompt", "")


def _bound(written: Any, values: Mapping[str, Any]) -> Any:
    """Return arguments with what their references mean; as they are written, if
    one means nothing here.
    """
    try:
        return bind(written, values.__getitem__)
    except (BindError, KeyError):
        return written


def _text(value: Any) -> str:
    """Return an output as people and models read it, without secrets, and cut where it
    is too long to be kept.
    """
    text = as_text(mask(value))
    if len(text) <= MAX_NOTED_CHARACTERS:
        return text
    return f"{text[:MAX_NOTED_CHARACTERS]} [cut]"


def _function(entry: Mapping[str, Any]) -> dict[str, Any]:
    parts = {
        "name": entry["name"],
        "description": entry.get("description", ""),
        "parameters": entry.get("schema"),
    }
    return {"type": "function", "function": parts}


def _layers(calls: Sequence[NotedCall]) -> list[list[int]]:
    """Return the numbers of calls in layers: each call stands behind all that it
    was given something of.
    """
    depth: list[int] = []
    layers: list[list[int]] = []
    for number, call in enumerate(calls):
        sources = (*call.uses, *call.after)
        behind = [depth[earlier] for earlier in sources]
        depth.append(max(behind, default=-1) + 1)
        while len(layers) <= depth[number]:
            layers.append([])
        layers[depth[number]].append(number)
    return layers
