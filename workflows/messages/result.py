"""A run's final report, as the workflow returns it and `sennit --output json` prints it."""

from typing import Any, Literal, Self

from pydantic import Field, JsonValue

from workflows.messages.contracts import Evidence, Message
from workflows.plan.language.limits import NO_USAGE, Usage, dollars, micro_dollars

RunStatus = Literal["running", "blocked", "done", "partial", "failed", "cancelled"]


class ApprovedWrite(Message):
    """What a person has approved: the digest of tool and arguments as the effect ledger has it, `target` that of what
    was there before, and the `args` that the person has changed.
    """

    digest: str
    target: str = ""
    args: tuple[str, ...] = ()
    by: str = Field(default="", description="who approved it, as they say")


class NodeLine(Message):
    """One node: how it ended, after how many attempts and milliseconds from start to end, and why it failed,
    or needed its fallback. `taken_over` says that a program was edited, or ran again, and did not have to make this
    call again; `answered` that a person has given its result, and it was not called for that.

    `summary` says what it does, id first, as the timeline does. In a report of many nodes it is short, or absent, and a
    map's items leave it to their map.
    """

    id: str
    kind: str
    status: Literal["pending", "running", "waiting", "succeeded", "failed", "skipped", "cancelled"]
    attempts: int = 0
    duration_ms: int | None = None
    error: str | None = None
    summary: str = ""
    approved: ApprovedWrite | None = None
    taken_over: bool = False
    answered: bool = False


class BlockedOn(Message):
    """What a person must decide: the node, why, and the update to send, with an example of its input.

    `question` is one line; `shown` is what stands below it: the rest of a long question, or the values of a write.
    `also` are other updates that fit. With `parts` it is about so many writes together, each of which asks by itself
    too.

    If a sub-agent asks, `node` is its path from the run that shows it (`sub.n1`), and the update goes to `run`.
    """

    node: str
    why: str
    question: str = ""
    shown: str = ""
    parts: int = 0
    update: str
    example: dict[str, JsonValue]
    command: str
    also: tuple[str, ...] = ()
    run: str = ""


class UsageReport(Message):
    """Tokens, model calls and US dollars of the whole run, without what cancelled calls used, which is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost_usd: float = 0.0

    @classmethod
    def of(cls, usage: Usage) -> Self:
        """Return usage as reports have it."""
        given, written, cost, calls = usage
        return cls(input_tokens=given, output_tokens=written, calls=calls, cost_usd=dollars(cost))


class RunReport(Message):
    """One run. `answer` is text or JSON; `[n]` marks in it refer to `evidence`. `problem` says why there is none."""

    id: str
    run_id: str
    status: RunStatus
    answer: JsonValue = None
    answer_ref: str | None = Field(default=None, description="digest of the whole answer when it was cut")
    evidence: tuple[Evidence, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict, description="how many nodes ended in each status")
    nodes: tuple[NodeLine, ...] = Field(default=(), description="in plan order; failed ones first if any is left out")
    nodes_left_out: int = Field(default=0, description="nodes not listed because the list would be too long")
    usage: UsageReport = UsageReport()
    problem: str | None = None
    quote: str = Field(default="", description="what its programs could cost, from the least to the most")
    blocked: tuple[BlockedOn, ...] = Field(default=(), description="what a run that goes on waits for")
    warnings: tuple[str, ...] = ()
    ui_url: str | None = None


def usage_in(report: Any) -> Usage:
    """Return the usage in a run's report, or in a detail of its failure; zero if there is none."""
    used = report.get("usage") if isinstance(report, dict) else None
    if not isinstance(used, dict):
        return NO_USAGE
    cost = micro_dollars(used.get("cost_usd", 0))
    return Usage(used.get("input_tokens", 0), used.get("output_tokens", 0), cost, used.get("calls", 0))
