"""The one object that starts a run, and errors that name what is wrong with it."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, JsonValue, ValidationError

from sennit.workflows.limits import (
    MAX_AGENTS_ABOVE,
    MAX_CONTINUED_ID_CHARACTERS,
    MAX_CONTINUED_TURNS,
    MAX_ORIGINS,
    MAX_REQUEST_BYTES,
    MAX_TENANT_BYTES,
)
from sennit.workflows.messages.message import Message, RunName
from sennit.workflows.messages.queues import models_in
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.language.limits import Duration, Limits, Usage
from sennit.workflows.plan.language.nodes import ApprovalPolicy, ChatTurns, Fuse, Goal, OnFailure
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import format_name, text_bytes
from sennit.workflows.plan.language.validation_messages import Frozen, describe_errors
from sennit.workflows.plan.limits import (
    DEFAULT_IN_FLIGHT,
    DEFAULT_WINDOW,
    MAX_CALL_MEDIA,
    MAX_JSON_LEVELS,
    MAX_NODES,
    MAX_PACKED_BYTES,
)
from sennit.workflows.plan.speculation.follower import PastSpeculation, Speculation

M = TypeVar("M", bound=BaseModel)
EXAMPLE = '{"goal": "Which is longer, the Nile or the Amazon?"}'


class InvalidRequest(Exception):
    """The run's input is not a run request. The message names every wrong
    field and gives an example.
    """


class Unreadable:
    """Stands for an input that is no JSON, or JSON nested deeper than 200 levels."""


def _models(text: str) -> str:
    models_in(text)
    return text


def _tenant(name: str) -> str:
    if text_bytes(name) > MAX_TENANT_BYTES or not name.isprintable():
        raise ValueError(f"is a name of at most {MAX_TENANT_BYTES} bytes of printable text")
    return name


class PlanReview(Message):
    """What a planner needs to write another plan when a person rejects the one
    that they are asked about.
    """

    planner: str
    """The task queue of its model."""
    draft: str = ""
    """Its last plan, and what it wrote; without text it can write no other one."""
    text: str = ""
    rejections: tuple[str, ...] = ()
    """What people have said about its plans, in order."""


class ContinuedState(Message):
    """What one run passes to the next when it continues as new; people never write it.

    `execution_plan` is there if programs have added nodes to the plan. `events` is the number of
    the next event. A run that `was_reset` reads in the ledger of effects what it has forgotten.
    `review` is there while a person is asked about the plan of a planner. A run that `has_place` in
    the quota of its namespace gives it back at its end.
    """

    run_prefix: str
    run_context: str
    plan: str
    execution_plan: str = ""
    snapshot: str
    usage: Usage
    replans: int = 0
    epoch: int = 1
    attributes: tuple[str, ...] = ()
    last_reported: str = ""
    warnings: tuple[str, ...] = ()
    log: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    log_cut: int = 0
    events: int = 1
    was_reset: bool = False
    review: PlanReview | None = None
    learns: bool = False
    has_place: bool = False
    speculation: Speculation | None = None
    speculated: PastSpeculation | None = None


class RunInput(Frozen):
    """What a run is to do: a `goal` for the planner, or a `plan`, which may have a `title`.
    Everything else has a default.

    `model` serves every role in the place of those that the workers are set to; several
    stand with commas between.

    `settings` are those of its model calls, over those of the roles and under
    those of a call itself.

    `instructions` are told to every model of the run and of its sub-agents. `continues` is
    the id of a run whose conversation this one goes on with; `history` are turns of a
    conversation that nobody has kept.

    `attachments` are files of images, PDFs and recordings where the workers run, by absolute paths:
    those of a plan by the names of its inputs, and those of a goal are shown to the models that are
    given the goal. A folder, which only a plan takes, is a workspace.

    `window` is how many activities are under way at once, `in_flight` how many nodes and
    items: several short calls share an activity as `fuse` says, or the plan where that is not
    given. With `speculate` calls that only read may be made before they are asked for, as far
    as the workers allow that.

    With `approve_plan` a person approves the plan before any of it starts, and each program before
    it begins. With `trust_program` the programs of the plan, as they are, also run where the kernel
    cannot confine them, on the workers of a local stack. `agents_above` says how many agents have
    asked each other before this run, by A2A.
    """

    goal: Goal = ""
    title: str = Field(default="", max_length=200)
    plan: dict[str, JsonValue] | None = None
    plan_packed: str | None = Field(default=None, max_length=MAX_PACKED_BYTES)
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    docs: str | None = Field(default=None, max_length=4096)
    tools: tuple[str, ...] | None = None
    model: Annotated[str, Field(max_length=500), AfterValidator(_models)] = ""
    settings: CallSettings | None = None
    instructions: str = Field(default="", max_length=32_000)
    continues: str = Field(default="", max_length=MAX_CONTINUED_ID_CHARACTERS)
    history: ChatTurns = Field(default=(), max_length=MAX_CONTINUED_TURNS)
    attachments: dict[str, Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=dict, max_length=MAX_CALL_MEDIA
    )
    approval: ApprovalPolicy = "writes"
    agents_above: int = Field(default=0, strict=True, ge=0, le=MAX_AGENTS_ABOVE)
    approve_plan: bool = Field(default=False, strict=True)
    trust_program: bool = Field(default=False, strict=True)
    on_failure: OnFailure | None = None
    park_for: Duration = 86_400.0
    budget: Limits | None = None
    max_replans: int = Field(default=2, strict=True, ge=0, le=20)
    approve_replans_above: JsonValue = None
    """No setting any more: requests and schedules of earlier versions may carry it,
    and the run warns of it.
    """
    window: int = Field(default=DEFAULT_WINDOW, strict=True, ge=1, le=500)
    in_flight: int = Field(default=DEFAULT_IN_FLIGHT, strict=True, ge=1, le=MAX_NODES)
    fuse: Fuse | None = None
    speculate: Literal["off", "on"] | None = None
    tenant: Annotated[str, AfterValidator(_tenant)] = ""


class RunRequest(RunInput):
    """Starts a run, with what only Sennit itself writes.

    `material` and `depth` come with the goal of a sub-agent, from the run above it; nobody else may
    set them. So does `run_prefix`, the name of its artifacts, which a run without a parent ignores.

    `prepared` is there if the run above has prepared a sub-agent: what the activity
    that opens runs gives.

    `draft` is the plan of an item of a map, as `RUN/DIGEST` in the run above it,
    which alone may set it.

    `grant` is a secret that the client of a local stack makes for this run alone, so that its
    user's `approval` counts. It is of no use to another run, nor to the same one again.

    `origins` are the names of the artifacts of runs that this one forks, the latest first:
    calls that it makes as they did are not made, but have their results. A write that they
    may have made with another text asks a person first, whatever `approval` is, unless the
    run is to `repeat_writes`.
    """

    grant: str = Field(default="", max_length=100)
    repeat_writes: bool = Field(default=False, strict=True)
    material: str = Field(default="", max_length=200)
    draft: str = Field(default="", max_length=200)
    prepared: dict[str, JsonValue] | None = None
    origins: tuple[RunName, ...] = Field(default=(), max_length=MAX_ORIGINS)
    run_prefix: str = Field(default="", max_length=100)
    depth: int = Field(default=0, strict=True, ge=0, le=100)
    carry: ContinuedState | None = None

    def fields_of_subagents(self) -> tuple[str, ...]:
        """Return the names of the fields it has that only a sub-agent may have."""
        return tuple(
            name for name in ("material", "depth", "draft", "prepared") if getattr(self, name)
        )


def parse_request(request: Any, *more: Any) -> RunRequest:
    """Return the run request in `request`; raises InvalidRequest for anything
    else, whatever its shape.
    """
    try:
        parsed = parse_object(RunRequest, (request, *more), "a run", EXAMPLE)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    size = text_bytes(json.dumps({**request, "carry": None}, ensure_ascii=False))
    if size > MAX_REQUEST_BYTES:
        way_out = (
            "Use a `map` node for many alike nodes, send `plan_packed`, put long texts in a "
            "document"
        )
        raise InvalidRequest(
            f"the request has {size:,} bytes; at most {MAX_REQUEST_BYTES:,}. {way_out}"
        )
    if not has_work(parsed) and parsed.carry is None:
        raise InvalidRequest(f"a run needs a `goal` or a `plan`; for example {EXAMPLE}")
    if parsed.plan is not None and parsed.plan_packed is not None:
        raise InvalidRequest("give `plan` or `plan_packed`, not both")
    if parsed.continues and parsed.history:
        raise InvalidRequest(
            "give `continues` or `history`, not both: the run that is continued has its own turns"
        )
    return parsed


def parse_object(
    model: type[M], inputs: Sequence[Any], what: str, example: str, prefix: str = ""
) -> M:
    """Return the model in the only one of the inputs of a run or an update; raises
    ValueError for anything else.
    """
    count = f"{len(inputs)} inputs" if len(inputs) != 1 else _shape(inputs[0])
    if len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise ValueError(f"{what} takes one JSON object, not {count}; for example {example}")
    unsound = first_violation(inputs[0], depth=MAX_JSON_LEVELS + 2)
    if unsound is not None:  # it would fail wherever it is sent next
        raise ValueError(f"{prefix}{format_name(place_of(unsound[0]) or 'input')}: {unsound[1]}")
    try:
        return model.model_validate(inputs[0])
    except ValidationError as error:
        raise ValueError(
            f"{prefix}{describe_errors(error, model.model_fields)}; for example {example}"
        ) from None


def _shape(value: Any) -> str:
    """Return in two words what a value is that should have been an object."""
    if value is None:
        return "nothing"
    names = {
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        Unreadable: "something that is no JSON or nested too deep",
    }
    return names.get(type(value), type(value).__name__)


def has_work(request: RunRequest) -> bool:
    return bool(request.goal.strip()) or has_plan(request)


def has_plan(request: RunRequest) -> bool:
    return request.plan is not None or request.plan_packed is not None or bool(request.draft)
