"""What an agent is told about runs: short, because a model reads all of it, and with the
commands for its person.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

from pydantic import BaseModel, Field, JsonValue

from sennit.starter.client.runs import RunSummary
from sennit.starter.limits import MAX_REPLY_CHARACTERS, MAX_REPLY_NODES
from sennit.starter.terminal.render import counts_text
from sennit.workflows.messages.contracts import Evidence
from sennit.workflows.messages.result import BlockedOn, RunReport, RunStatus
from sennit.workflows.plan.language.references import as_text


class Question(BaseModel):
    """What a run waits for. No tool answers it: that is for a person, by
    `command`, or in the web UI.
    """

    node: str
    why: str
    question: str
    shown: str = Field(
        default="", description="what the person decides about, such as the values of a write"
    )
    command: str = Field(
        description="the command by which the person decides; show it to them, do not run it"
    )

    @classmethod
    def of(cls, item: BlockedOn, flags: str) -> Self:
        """Return a question; `flags` is what its command needs to reach the server."""
        command = f"{item.command}{flags}"
        return cls(
            node=item.node, why=item.why, question=item.question, shown=item.shown, command=command
        )


class FailedNode(BaseModel):
    """A node that has failed, and why."""

    node: str
    error: str


class RunState(BaseModel):
    """How a run stands. `answer` is there once it is over; of a long one the
    beginning of its text.
    """

    run: str = Field(description="the run's id, which the other tools take")
    status: RunStatus = Field(
        description=(
            "running and blocked go on; blocked waits for a person. done, partial, failed, "
            "cancelled are over"
        )
    )
    progress: str = Field(default="", description="how many nodes have ended")
    questions: list[Question] = Field(
        default=[], description="for the person, each with the command that answers it"
    )
    answer: JsonValue = None
    answer_is_cut: bool = Field(
        default=False, description="whether `output` has more of the answer"
    )
    evidence: list[Evidence] = Field(
        default=[], description="the sources of marks [n] in the answer"
    )
    problem: str = Field(
        default="", description="why there is no answer, or why nobody can say more now"
    )
    failed: list[FailedNode] = Field(
        default=[], description="nodes that have failed; `retry` runs one again"
    )
    warnings: list[str] = []
    model_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    ui: str | None = Field(default=None, description="the run's page in the web UI, for the person")

    @classmethod
    def of(cls, report: RunReport, flags: str) -> Self:
        """Return the state that a report tells of; `flags` is what commands
        need to reach the server.
        """
        failed = [node for node in report.nodes if node.status == "failed"]
        progress = ""
        if report.counts:
            progress = counts_text(report.counts)
        answer, is_cut = _bounded(report.answer)
        return cls(
            run=report.id,
            status=report.status,
            progress=progress,
            questions=[Question.of(item, flags) for item in report.blocked],
            answer=answer,
            answer_is_cut=is_cut,
            evidence=list(report.evidence),
            problem=report.problem or "",
            failed=[
                FailedNode(node=node.id, error=node.error or "")
                for node in failed[:MAX_REPLY_NODES]
            ],
            warnings=list(report.warnings),
            model_calls=report.usage.calls,
            tokens=report.usage.input_tokens + report.usage.output_tokens,
            cost_usd=report.usage.cost_usd,
            ui=report.ui_url,
        )


def _bounded(answer: JsonValue) -> tuple[JsonValue, bool]:
    """Return an answer, and whether only the beginning of its text is left of it."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if len(text) <= MAX_REPLY_CHARACTERS:
        return answer, False
    return text[:MAX_REPLY_CHARACTERS], True


class PlanCheck(BaseModel):
    """What is wrong with a plan, line by line; without problems it can be run."""

    problems: list[str]
    warnings: list[str] = []
    nodes: int | None = Field(
        default=None, description="how many nodes it has; a program adds more while it runs"
    )
    quote: list[str] = Field(
        default=[], description="what a program can cost, from the least to the most"
    )
    unchecked: str = Field(default="", description="what only the run itself checks, and why")


class OutputPart(BaseModel):
    """A part of an output as text: a text as it is, all else as JSON."""

    text: str
    characters: int = Field(description="how long the whole text is")
    next_offset: int | None = Field(
        default=None, description="where the next part begins, if there is one"
    )

    @classmethod
    def of(cls, value: JsonValue, offset: int) -> Self:
        """Return the part of an output that begins at this character."""
        text = as_text(value)
        end = offset + MAX_REPLY_CHARACTERS
        next_offset = end if end < len(text) else None
        return cls(text=text[offset:end], characters=len(text), next_offset=next_offset)


class RunLine(BaseModel):
    """A run in a list."""

    run: str
    status: RunStatus
    title: str
    began: datetime
    ended: datetime | None = None
    waits_for: str = Field(default="", description="what the run needs a person or a server for")

    @classmethod
    def of(cls, summary: RunSummary) -> Self:
        """Return a run as the server's list has it."""
        ended = datetime.fromtimestamp(summary.closed, UTC) if summary.closed else None
        return cls(
            run=summary.id,
            status=summary.status,
            title=summary.title,
            began=datetime.fromtimestamp(summary.began, UTC),
            ended=ended,
            waits_for=summary.waits_for,
        )


class RunList(BaseModel):
    """Runs, the newest first. `more` says how many others fit."""

    runs: Sequence[RunLine]
    more: int = 0


class Done(BaseModel):
    """What the run says about a change that was asked for."""

    run: str
    message: str
