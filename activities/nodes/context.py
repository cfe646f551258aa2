"""One node's turn: what is to run and with what, and what it has made."""

from dataclasses import dataclass
from typing import Any, Literal

from activities.nodes.attempts import Attempts
from activities.nodes.binding import Address, Binder
from activities.storage.run_context import StoredPlan
from workflows.messages.contracts import NodeCall
from workflows.messages.usage import NOTHING, Usage


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
    """A node's output, with usage where a model was called. With `more` it is a wish for more nodes; `calls` counts the
    model calls behind it where they are not one.
    """

    output: Any
    usage: Usage = NOTHING
    more: Literal["", "replan", "calls"] = ""
    calls: int = 0
