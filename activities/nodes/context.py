"""One node's turn: what is to run and with what, and what it has made."""

from dataclasses import dataclass
from typing import Any, Literal

from activities.nodes.attempts import Attempts
from activities.nodes.binding import Address, Binder
from activities.storage.run_context import StoredPlan
from workflows.messages.contracts import NodeCall
from workflows.plan.language.limits import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What is to run and with what."""

    checked: StoredPlan
    address: Address
    call: NodeCall
    binder: Binder
    run_prefix: str
    attempts: Attempts


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """A node's output, with usage where a model was called. With `more` it is a request for more nodes."""

    output: Any
    usage: Usage = NO_USAGE
    more: Literal["", "replan", "calls"] = ""
