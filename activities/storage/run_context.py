"""What a run is bound to, as artifacts: its run_context, and the checked plan that
every node activity reads.
"""

import asyncio
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, field_validator

from sennit.activities.limits import MAX_BODY_BYTES, MAX_KEPT_PLANS_BYTES, MAX_KEPT_VALUES_BYTES
from sennit.activities.storage.artifacts import (
    ArtifactStore,
    BodyMissing,
    decode,
    digest_of,
    encode,
)
from sennit.activities.storage.manifest import value_of
from sennit.activities.toolbox.read_output import ENTRY, GIVE, PART, SLEEP
from sennit.workflows.plan.bounded_cache import BoundedCache, decoded_bytes
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.edits.call_keys import call_keys
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.call_settings import NO_SETTINGS, CallSettings
from sennit.workflows.plan.language.media import Media
from sennit.workflows.plan.language.nodes import ApprovalPolicy, ModelCall, Node, Plan
from sennit.workflows.plan.language.references import BindError, parse_reference

_NODE_BYTES = 4096
"""Of a node of a checked plan, beside what it has in JSON: what the scheduler knows of it, and what
readers have worked out; 2.3 KB were measured.
"""
_INLINE_BYTES = 256 * 1024
FORMED_ROLES = ("planner", "joiner")
"""Roles whose replies Sennit reads by grammars of its own: no `stop` may end them."""
_PLACE = re.compile(r"[0-9A-Za-z-]{1,100}/[0-9a-f]{40}")


class RunContext(BaseModel):
    """Fixed when a run opens: goal, inputs, documents, the catalogue of the allowed tools, and
    the models of each role in order of preference, with the settings of its calls. `absences`
    say why tools are not there, by the beginning of their names. `material` is the digest of
    what a sub-agent's goal names: texts of nobody in particular. `history` is that of the
    turns before this run, and `instructions` are told to all its models. `attached` are
    images, PDFs and recordings that came with the goal. `agents_above` is how many agents have
    asked each other before the run.
    """

    model_config = ConfigDict(frozen=True)

    goal: str
    inputs: dict[str, JsonValue]
    docs: str | None
    approval: ApprovalPolicy
    approve_plan: bool = False
    trusted_scripts: tuple[str, ...] = ()
    catalogue: list[dict[str, Any]]
    absences: dict[str, str] = {}
    models: dict[str, list[str]] = {}
    settings: dict[str, CallSettings] = {}
    material: str = ""
    history: str = ""
    instructions: str = ""
    attached: tuple[Media, ...] = ()
    priced: bool = False
    repeat_writes: bool = False
    agents_above: int = 0

    def settings_of(self, role: str) -> CallSettings:
        """Return the settings of a role's calls in this run."""
        settings = self.settings.get(role, NO_SETTINGS)
        return _without_stop(settings, role)

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """What nodes of the run may call, by name: the catalogue, and what models and
        programs read outputs with.
        """
        return {entry["name"]: entry for entry in (*self.catalogue, ENTRY, PART, SLEEP, GIVE)}


class StoredPlan(BaseModel):
    """A plan that passed every check, with bound inputs: all that binding a node's arguments needs.

    Of a page of a program, `keys` are what the calls are known by instead of their ids, and
    `materials` the digests of values that a node refers to by names of its own; `cautions` say
    what an earlier script has written. `confirms` are writes that were made and ask before they
    are taken over, each with the mark that says that a person has agreed. With `repeat_writes`
    nobody is asked about that.
    """

    model_config = ConfigDict(frozen=True)

    run_context: str
    goal: str
    docs: str | None
    inputs: dict[str, JsonValue]
    material: str = ""
    plan: Plan
    execution_plan: str
    wanted: dict[str, list[str]]
    models: dict[str, list[str]] = {}
    settings: dict[str, CallSettings] = {}
    history: str = ""
    instructions: str = ""
    attached: tuple[Media, ...] = ()
    warnings: tuple[str, ...] = ()
    keys: dict[str, str] = {}
    materials: dict[str, dict[str, str]] = {}
    cautions: dict[str, str] = {}
    confirms: dict[str, str] = {}
    repeat_writes: bool = False

    @field_validator("plan", mode="before")
    @classmethod
    def _without_steps(cls, plan: Any) -> Any:
        """Take the pages of programs that an earlier version has advanced: a node that
        says where such a script stands becomes a program without a script, which cannot go
        on. Calls beside it can.
        """
        if not isinstance(plan, dict):
            return plan
        nodes: list[dict[str, Any]] = []
        for node in plan.get("nodes", ()):
            if node.get("kind") == "program" and "step" in node:
                nodes.append({"id": node["id"], "kind": "program"})
            else:
                nodes.append(node)
        return {**plan, "nodes": nodes}

    def node(self, name: str) -> Node:
        return self._nodes[name]

    @property
    def asked(self) -> list[str]:
        """What the calls that are given the run's goal are known by beside their own text."""
        asked = [self.goal, self.material]
        if self.history:
            asked.append(self.history)
        asked += [media.artifact for media in self.attached]
        return asked

    def find(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def spec(self, name: str) -> NodeSpec:
        return self._specs[name]

    def call_key(self, name: str) -> str:
        """Return what the node does as a key, whatever its id."""
        return self._call_keys[name]

    def settings_of(self, work: ModelCall) -> CallSettings:
        """Return the settings of a call: its own over those of its role in the run. What Sennit
        reads by a grammar of its own is never cut at a text.
        """
        settings = self.settings.get(work.role, NO_SETTINGS).under(work.settings)
        return _without_stop(settings, work.role)

    def name_at(self, index: int) -> str:
        return self.plan.nodes[index].id

    def know(self, specs: Iterable[NodeSpec]) -> None:
        """Have what the scheduler knows of the nodes at hand, without the packed plan."""
        self.__dict__["_specs"] = {spec.id: spec for spec in specs}

    @cached_property
    def answer(self) -> Any:
        return dependencies.answer_of(self.plan)  # it walks the whole plan; every node asks for it

    @cached_property
    def answering(self) -> str | None:
        """The node whose output is the whole answer."""
        if not isinstance(self.answer, str):
            return None
        reference = parse_reference(self.answer)
        if reference is None or reference.path:
            return None
        return reference.node

    @cached_property
    def worked_out(self) -> dict[tuple[str, str | None], Any]:
        """What readers have worked out of what is written at a place of the plan:
        many calls need the same.
        """
        return {}

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return self.plan.by_id

    @cached_property
    def _specs(self) -> dict[str, NodeSpec]:
        return {spec.id: spec for spec in ExecutionPlan.unpack(self.execution_plan).specs}

    @cached_property
    def _call_keys(self) -> dict[str, str]:
        return call_keys(self.plan)


def plan_marker(digest: str) -> str:
    """Return the name of the marker that says with which draft a run begins, or what a
    planner replied with a draft.

    `digest` is that of the run_context, or of the draft.
    """
    return f"{digest}.plan"


class ArtifactReader:
    """Loads run contexts, checked plans and values; a worker keeps the latest plans and
    the latest lists of maps.
    """

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._loading = asyncio.Lock()
        self._plans = BoundedCache[tuple[str, str], _KeptPlan](
            MAX_KEPT_PLANS_BYTES, lambda kept: kept.bytes
        )
        self._sharing = asyncio.Lock()
        self._shared = BoundedCache[tuple[str, str], _Output](
            MAX_KEPT_VALUES_BYTES, lambda output: output.decoded
        )

    @property
    def store(self) -> ArtifactStore:
        """Where it reads from."""
        return self._store

    async def run_context(self, run_prefix: str, digest: str) -> RunContext:
        """Return a run's run_context. Raises BodyMissing or StoreUnavailable."""
        return RunContext.model_validate_json(await self._store.get(run_prefix, digest))

    async def plan(self, run_prefix: str, digest: str) -> StoredPlan:
        """Return a checked plan. Raises BodyMissing or StoreUnavailable."""
        key = (run_prefix, digest)
        kept = self._plans.get(key)
        if kept is None:
            async with self._loading:  # one parses a big plan, the others find it
                kept = self._plans.get(key) or await self._load(run_prefix, digest)
        return kept.plan

    async def _load(self, run_prefix: str, digest: str) -> "_KeptPlan":
        body = await self._store.get(run_prefix, digest)
        if len(body) < _INLINE_BYTES:
            plan = StoredPlan.model_validate_json(body)
        else:
            plan = await asyncio.to_thread(StoredPlan.model_validate_json, body)
        return self._remember(run_prefix, digest, plan, body)

    def _remember(self, run_prefix: str, digest: str, plan: StoredPlan, body: bytes) -> "_KeptPlan":
        kept = _KeptPlan(plan, decoded_bytes(body) + _NODE_BYTES * len(plan.plan.nodes))
        self._plans.put((run_prefix, digest), kept)
        return kept

    async def keep(self, run_prefix: str, value: BaseModel) -> str:
        """Store a run_context or plan and return its digest. Fields keep their order: a
        tool's arguments have one.

        A plan is not parsed again here: it is mostly read soon after it was checked.
        """
        body = value.model_dump_json(by_alias=True).encode()
        digest = await self._store.put(run_prefix, body)
        if isinstance(value, StoredPlan):
            self._remember(run_prefix, digest, value, body)
        return digest

    async def put(self, run_prefix: str, value: Any) -> str:
        """Store a value beside the outputs and return its digest. Raises StoreUnavailable."""
        return await self._store.put(run_prefix, encode(value))

    async def material(self, run_prefix: str, run_context: RunContext) -> dict[str, str]:
        """Return what a sub-agent's goal names, by name. Raises BodyMissing or StoreUnavailable."""
        return await self.value(run_prefix, run_context.material) if run_context.material else {}

    async def adopt(self, run_prefix: str, material: str) -> str:
        """Keep here what lies at `RUN/DIGEST`, so that it is this run's own. Raises
        BodyMissing or StoreUnavailable.
        """
        run, _, digest = material.partition("/")
        if not _PLACE.fullmatch(material):
            raise BodyMissing(f"{material!r:.100} is no artifact of a run")
        namespace = run_prefix.rpartition("/")[0]
        body = await self._store.get(f"{namespace}/{run}", digest)
        return await self._store.put(run_prefix, body)

    async def value(self, run_prefix: str, reference: str) -> Any:
        """Return an output, or what a join has gathered. Raises BodyMissing or StoreUnavailable."""
        return (await self.sized(run_prefix, reference))[1]

    async def sized(self, run_prefix: str, reference: str) -> tuple[int, Any]:
        """Return an output, or what a join has gathered, and how many bytes are stored of it.
        Raises BodyMissing or StoreUnavailable, and BindError for more than one output may have.
        """
        output = await self._output(run_prefix, reference)
        return output.stored, output.value

    async def _output(self, run_prefix: str, reference: str) -> "_Output":
        stored = decoded = 0

        async def read(digest: str) -> Any:
            nonlocal stored, decoded
            body = await self._store.get(run_prefix, digest)
            stored += len(body)
            decoded += decoded_bytes(body)
            if stored > max(len(body), MAX_BODY_BYTES):
                size = f"over {MAX_BODY_BYTES:,} bytes in all"
                raise BindError(
                    f"what the join has gathered is {size}. Return less, or paths to where it is"
                )
            if len(body) < _INLINE_BYTES:
                return decode(body)
            return await asyncio.to_thread(decode, body)

        value = await value_of(reference, read)
        # What the manifest of a join says of its inputs is decoded as well.
        return _Output(value, stored, decoded + decoded_bytes(reference.encode()))

    async def put_all(self, run_prefix: str, bodies: Iterable[bytes]) -> None:
        """Store bodies beside the outputs. Raises StoreUnavailable."""
        writes = [self._store.put(run_prefix, body) for body in bodies]
        await asyncio.gather(*writes)

    async def note(self, run_prefix: str, name: str, value: Any, *, again: bool = False) -> None:
        """Keep a value under a name: the first one, unless it is noted `again`.
        Raises StoreUnavailable.
        """
        key = digest_of(name.encode())
        if again:
            await self._store.replace_marker(run_prefix, key, encode(value))
        else:
            await self._store.mark(run_prefix, key, encode(value))

    async def noted(self, run_prefix: str, name: str) -> Any:
        """Return what was kept under a name, None if nothing was. Raises StoreUnavailable."""
        body = await self._store.marked(run_prefix, digest_of(name.encode()))
        if body is None:
            return None
        return decode(body)

    async def shared(self, run_prefix: str, digest: str) -> Any:
        """Return a stored output that many calls read a part of, as the items of a map:
        it must not be changed.

        The latest are kept. Raises BodyMissing or StoreUnavailable.
        """
        key = (run_prefix, digest)
        async with self._sharing:  # one reads a long list, the others find it
            output = self._shared.get(key)
            if output is None:
                output = await self._output(run_prefix, digest)
                self._shared.put(key, output)
        return output.value


class _KeptPlan(NamedTuple):
    """A checked plan, with how many bytes of memory it takes once its nodes have been read."""

    plan: StoredPlan
    bytes: int


class _Output(NamedTuple):
    """An output, with how many bytes are stored of it, and how many it takes in memory at most."""

    value: Any
    stored: int
    decoded: int


def _without_stop(settings: CallSettings, role: str) -> CallSettings:
    """Return the settings of a call. What Sennit reads by a grammar of its own
    is never cut at a text.
    """
    if role not in FORMED_ROLES:
        return settings
    return settings.model_copy(update={"stop": None})
