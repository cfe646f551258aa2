"""Who has decided what in a run, as the run itself has recorded it: people, and
rules of the operator.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sennit.starter.client.below import subagent_of
from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import NoAnswer, RunNotFound
from sennit.starter.client.run import Run
from sennit.workflows.messages.views import RunEvent, RunView


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One decision. `at` is a Unix time, `node` a path from the run that was asked about, and
    `update` what was decided: an update's name. It was `by` a person, as their client has named
    them, or by the operator's `rule`. `digest` is that of the write which they were shown; `text`
    is the reason, or the values that a rule has let through.
    """

    at: float
    node: str
    update: str
    by: str = ""
    rule: str = ""
    digest: str = ""
    text: str = ""


async def audit(sennit: Sennit, name: str) -> tuple[list[AuditLine], list[str]]:
    """Return all decisions of a run and its sub-agents in their order, and which
    sub-agents do not tell theirs.

    Raises RunNotFound, NoAnswer if no worker answers for the run itself, or another SennitError.
    """
    run, _ = await sennit.look_up(name)
    found = await _lines(run, "")
    silent: list[str] = []
    open_ends = list(_agents(await run.view(), run.id, ""))
    while open_ends:
        owner, node, path = open_ends.pop()
        try:
            name = await subagent_of(sennit.client, owner, node)
            child, _ = await sennit.look_up(f"{owner}.{name}")
            found += await _lines(child, f"{path}.")
            open_ends += _agents(await child.view(), child.id, f"{path}.")
        except (NoAnswer, RunNotFound):
            silent.append(path)
    return sorted(found, key=lambda line: line.at), sorted(silent)


def _agents(view: RunView, run: str, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield the sub-agents that a run has started: the run, the node, and its path from
    the run that was asked.
    """
    for node in view.nodes:
        if node.kind == "agent" and node.attempts and not node.taken_over:
            yield run, node.id, f"{prefix}{node.id}"


async def _lines(run: Run[Any], prefix: str) -> list[AuditLine]:
    events = run.events(follow=False, texts=False)
    return [_line(event, prefix) async for event in events if event.kind == "answered"]


def _line(event: RunEvent, prefix: str) -> AuditLine:
    node = f"{prefix}{event.node}".rstrip(".")
    return AuditLine(event.at, node, event.update, event.by, event.rule, event.digest, event.text)
