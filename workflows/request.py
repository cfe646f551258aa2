"""The one object that starts a run, and the errors which name what is wrong with it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from workflows.plan.durations import Duration
from workflows.plan.model import MAX_GOAL_BYTES, OnFailure

MAX_PACKED_BYTES = 1024 * 1024
PACK_ABOVE_BYTES = 64 * 1024
EXAMPLE = '{"goal": "Which is longer, the Nile or the Amazon?"}'


class InvalidRequest(Exception):
    """The run's input is not a run request. The message names every wrong field and gives an example."""


class Unreadable:
    """Stands for an input that is no JSON, or JSON nested deeper than 200 levels."""


class Carry(BaseModel):
    """What one run hands to the next when it continues as new; never written by people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: str
    charter: str
    plan: str
    snapshot: str
    usage: tuple[int, int, int, int]
    runs: int = 1


class RunRequest(BaseModel):
    """Starts a run: a `goal` for the planner, or a `plan`. Everything else has a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    goal: str = ""
    plan: dict[str, JsonValue] | None = None
    plan_packed: str | None = Field(default=None, max_length=MAX_PACKED_BYTES)
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    docs: str | None = Field(default=None, max_length=4096)
    tools: tuple[str, ...] | None = None
    approval: Literal["writes", "never"] = "writes"
    on_failure: OnFailure | None = None
    park_for: Duration = 86_400.0
    window: int = Field(default=100, ge=1, le=500)
    carry: Carry | None = None


def parse_request(request: Any, *more: Any) -> RunRequest:
    """Return the run request in `request`; raises InvalidRequest for anything else, whatever its shape."""
    if more:
        raise InvalidRequest(f"a run takes one JSON object, not {1 + len(more)} inputs; for example {EXAMPLE}")
    if not isinstance(request, dict):
        raise InvalidRequest(f"a run takes one JSON object, not {shape_of(request)}; for example {EXAMPLE}")
    try:
        parsed = RunRequest.model_validate(request)
    except ValidationError as error:
        raise InvalidRequest(f"{describe(error)}; for example {EXAMPLE}") from None
    if len(parsed.goal.encode()) > MAX_GOAL_BYTES:
        size = len(parsed.goal.encode())
        raise InvalidRequest(f"goal is {size} bytes; at most {MAX_GOAL_BYTES}. Put long text in a document")
    if not parsed.goal.strip() and parsed.plan is None and parsed.plan_packed is None:
        raise InvalidRequest(f"a run needs a `goal` or a `plan`; for example {EXAMPLE}")
    if parsed.plan is not None and parsed.plan_packed is not None:
        raise InvalidRequest("give `plan` or `plan_packed`, not both")
    return parsed


def describe(error: ValidationError) -> str:
    """Return pydantic's errors as one line: each field with its problem, unknown fields first."""
    lines: list[str] = []
    for item in error.errors(include_url=False, include_context=False)[:5]:
        field = ".".join(str(part) for part in item["loc"]) or "input"
        if item["type"] == "extra_forbidden":
            lines.insert(0, f"unknown field `{field}`")
        elif item["type"] == "missing":
            lines.append(f"`{field}` is missing")
        else:
            lines.append(f"`{field}`: {item['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)[:1000]


def shape_of(value: Any) -> str:
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
