"""A run's state as one line of text, from which the next run of a chain continues.

Columns compress well and digests do not: a node costs about 30 bytes, so 10,000 nodes stay under 400 KB. `load(graph,
dump(state))` schedules exactly as `state` would.
"""

import base64
import json
import zlib
from dataclasses import astuple
from typing import Any

from workflows.plan.compile.graph import Graph
from workflows.plan.language.packing import inflate
from workflows.plan.scheduling import ready
from workflows.plan.scheduling.budget import Budget, Rate
from workflows.plan.scheduling.events import Approval, ExpansionRequest, Question
from workflows.plan.scheduling.state import SUCCEEDED, RunState

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
_COLUMNS = ("status", "generation", "digest", "size", "attempts", "millis", "queued")
_NODE_COLUMNS = ("open_deps", "floor", "open_inputs", "ok_inputs", "awaiting_inputs", "gather", "ungrouped")
_SPARSE = (
    "facts",
    "notes",
    "inherited_failure",
    "previous_result",
    "chosen",
    "answers",
    "approved",
    "questions",
    "deadlines",
    "past_deadline",
)
_SCALARS = ("window", "park_for", "on_failure", "now", "running", "waiting", "begun", "parked", "ended")


def dump(state: RunState) -> str:
    """Return the whole state as text."""
    body: dict[str, Any] = {name: getattr(state, name) for name in (*_COLUMNS, *_NODE_COLUMNS, *_SCALARS)}
    body.update({name: list(getattr(state, name).items()) for name in _SPARSE})
    body["answers"] = [
        (unit, value if state.status[unit] != SUCCEEDED else None)  # it is the output by now
        for unit, value in state.answers.items()
        if state.status[unit] != SUCCEEDED or state.kind_of(unit) != "gate"
    ]
    body["approve_above"], body["objections"] = state.approve_above, list(state.objections.items())
    body["expansion_requests"] = [(unit, astuple(request)) for unit, request in state.expansion_requests.items()]
    body["owner"] = _runs(state.owner)
    body["items"] = [[node, items.start, len(items)] for node, items in state.items.items()]
    body["held"] = state.held
    if state.taken_over:
        body["taken_over"] = list(state.taken_over)
    if state.pause:
        body["again"] = [state.park_until, state.pause]
    if state.budget is not None:
        body["budget"] = state.budget.dump()
    if state.rates:
        body["rates"] = [[queue, rate.limit, rate.calls, rate.ended] for queue, rate in state.rates.items()]
    text = json.dumps(body, separators=(",", ":"))
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode()


def load(graph: Graph, text: str) -> RunState:
    """Return the state that `dump` wrote, over the same graph."""
    body = json.loads(inflate(base64.b85decode(text), MAX_UNPACKED_BYTES))
    state = RunState(graph)
    for name in (*_COLUMNS, *_NODE_COLUMNS, *_SCALARS, "held"):
        setattr(state, name, body[name])
    for name in _SPARSE:
        setattr(state, name, dict(body[name]))
    _load_requests(state, body)
    state.notes = {unit: (kind, message) for unit, (kind, message) in body["notes"]}
    state.approved = {unit: Approval(*fields) for unit, fields in body["approved"]}
    state.questions = {unit: Question(*fields) for unit, fields in body["questions"]}
    state.taken_over = dict.fromkeys(body.get("taken_over", ()), True)
    state.chosen = {join: tuple(nodes) for join, nodes in body["chosen"]}
    state.owner = [(node, item) for node, count in body["owner"] for item in range(count)]
    state.items = {node: range(first, first + count) for node, first, count in body["items"]}
    state.park_until, state.pause = body.get("again", (0, 0))
    state.budget = Budget.load(body["budget"]) if "budget" in body else None
    ready.renew(state, {queue: Rate(*counts) for queue, *counts in body.get("rates", ())})
    state.started = [state.now] * len(state.status)
    for unit, queued in enumerate(state.queued):
        if queued:
            ready.queue(state, unit)
    return state


def _load_requests(state: RunState, body: dict[str, Any]) -> None:
    state.approve_above = body["approve_above"]
    state.objections = {unit: tuple(texts) for unit, texts in body["objections"]}
    for unit, (digest, nodes, why, summaries, *rest) in body["expansion_requests"]:
        state.expansion_requests[unit] = ExpansionRequest(digest, nodes, why, tuple(summaries), *rest)


def _runs(owner: list[tuple[int, int]]) -> list[list[int]]:
    """Fold item owners into [map, count]: each opening of a map is one run of items from 0."""
    runs: list[list[int]] = []
    for node, item in owner:
        if item:
            runs[-1][1] += 1
        else:
            runs.append([node, 1])
    return runs
