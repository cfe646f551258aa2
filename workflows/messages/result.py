"""A run's final report, as the workflow returns it and `sennit --output json` prints it."""

import shlex
from typing import Any, Literal, Self

from pydantic import Field, JsonValue

from sennit.workflows.messages.contracts import Evidence
from sennit.workflows.messages.message import Message
from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.language.limits import NO_USAGE, Usage, dollars, micro_dollars
from sennit.workflows.plan.scheduling.events import WriteStatus

WRITES = "sennit_writes"
"""The memo of a run that was cancelled: its `WriteLine`s, if it has any."""
WAITS_FOR = "sennit_waits_for"
"""The memo of a run that needs a person or a server: what for, as `gate n7 and 2 more`."""
RunStatus = Literal["running", "blocked", "done", "partial", "failed", "cancelled"]


class ApprovedWrite(Message):
    """What a person, or a rule of the operator, has approved: the digest of tool and arguments
    as the effect ledger has it, `target` that of what was there before, and the `args` that
    the person has changed.
    """

    digest: str
    target: str = ""
    args: tuple[str, ...] = ()
    by: str = Field(default="", description="who approved it, as they say")
    rule: str = Field(default="", description="the rule of the operator that approved it")


class NodeLine(Message):
    """One node: how it ended, after how many attempts and milliseconds from start to end, and why
    it failed, or needed its fallback. `taken_over` says that a program was edited, or ran again,
    and did not have to make this call again; `answered` that a person has given its result, and it
    was not called for that.

    `call_site` is where in its script a program has made the call, as `look#3/search:4`.

    `started` is when it last started, in seconds of the Unix clock. `tokens` and `cost_usd` are
    what its models have used in all generations: of a map with its items, of a task or a program
    with all that it has called. A task with a `budget` of its own has for each limit how much of it
    is spent and reserved.

    `summary` says what it does, id first, as the timeline does; that of a program's call says only
    what it is called with. In a report of many nodes it is short, or absent, and a map's items
    leave it to their map.
    """

    id: str
    kind: str
    status: Literal[
        "pending", "running", "waiting", "succeeded", "failed", "handled", "skipped", "cancelled"
    ]
    attempts: int = 1
    started: float | None = None
    duration_ms: int | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    budget: dict[str, dict[str, int | float | None]] = Field(default_factory=dict)
    error: str | None = None
    summary: str = ""
    approved: ApprovedWrite | None = None
    taken_over: bool = False
    answered: bool = False
    call_site: str = ""


class WriteLine(Message):
    """What became of a write, where the status of its node does not tell: it was
    cut off, or nobody knows.

    `node` is its path, with the generation if that is not the first: `n7`, `n7~2`, `sub.n1`.
    """

    node: str
    status: WriteStatus


class BlockedOn(Message):
    """What a person must decide: the node, why, and the update to send, with
    an example of its input.

    `question` is one line; `shown` is what stands below it: the rest of a long question, or the
    values of a write. `also` are other updates that fit. With `parts` it is about so many writes
    together, each of which asks by itself too. `full` is the value of an answer that is an
    object, with fields that may be left out; empty if it has none. `arguments` are those of a
    write that its approval may change, each with the JSON types that it may have, none for any;
    None if that is not known.

    If a sub-agent asks, `node` is its path from the run that shows it (`sub.n1`), and
    the update goes to `run`.
    """

    node: str
    why: str
    question: str = ""
    shown: str = ""
    parts: int = 0
    update: str
    example: dict[str, JsonValue]
    full: dict[str, JsonValue] = Field(default_factory=dict)
    arguments: dict[str, list[str]] | None = None
    command: str
    also: tuple[str, ...] = ()
    run: str = ""


class UsageReport(Message):
    """Tokens, model calls and US dollars of the whole run. Calls that were cancelled count
    with what they had used.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost_usd: float = 0.0
    cached_tokens: int = Field(
        default=0, description="input tokens that came out of a model server's cache"
    )

    @classmethod
    def of(cls, usage: Usage) -> Self:
        """Return usage as reports have it."""
        return cls(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            calls=usage.calls,
            cost_usd=dollars(usage.cost),
            cached_tokens=usage.cached_tokens,
        )


class RunReport(Message):
    """One run. `answer` is text or JSON; `[n]` marks in it refer to `evidence`. `problem`
    says why there is none.

    In a history, an answer above 64 KiB is the beginning of its text; clients put
    the whole in its place.
    """

    id: str
    run_id: str
    status: RunStatus
    answer: JsonValue = None
    answer_ref: str | None = Field(
        default=None, description="digest of the whole answer where it is cut"
    )
    evidence: tuple[Evidence, ...] = ()
    counts: dict[str, int] = Field(
        default_factory=dict, description="how many nodes ended in each status"
    )
    nodes: tuple[NodeLine, ...] = Field(
        default=(), description="in plan order; failed ones first if any is left out"
    )
    nodes_left_out: int = Field(
        default=0, description="nodes not listed because the list would be too long"
    )
    usage: UsageReport = UsageReport()
    problem: str | None = None
    figures: Figures | None = Field(
        default=None, description="what parallelism has brought; docs/figures.md"
    )
    writes: tuple[WriteLine, ...] = Field(
        default=(),
        description="writes that were cut off, or of which nobody knows whether they were made",
    )
    quote: str = Field(
        default="", description="what its programs could cost, from the least to the most"
    )
    blocked: tuple[BlockedOn, ...] = Field(
        default=(), description="what a run that goes on waits for"
    )
    warnings: tuple[str, ...] = ()
    log: tuple[str, ...] = Field(
        default=(), description="what its programs have logged, the last of it if it is long"
    )
    ui_url: str | None = None

    def without_defaults(self) -> Self:
        """Return the report without fields that say nothing, as it stands twice: in the history of
        a sub-agent, and in that of the run above it.
        """
        fields = type(self).model_fields
        said = {
            name: value
            for name, value in self
            if value != fields[name].get_default(call_default_factory=True)
        }
        return type(self)(**said)


def cut_warning(run: str) -> str:
    """Return what the report of a run in its history says of an answer that is cut there."""
    return f"the answer is cut here; the whole: {shlex.join(['sennit', 'output', run])}"


def usage_in(report: Any) -> Usage:
    """Return the usage in a run's report, or in a detail of its failure; zero if there is none."""
    used = report.get("usage") if isinstance(report, dict) else None
    if not isinstance(used, dict):
        return NO_USAGE
    cost = micro_dollars(used.get("cost_usd", 0))
    counts = {
        name: used.get(name, 0)
        for name in ("input_tokens", "output_tokens", "calls", "cached_tokens")
    }
    return Usage(cost=cost, **counts)
