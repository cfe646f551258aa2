"""What a model call is given of other nodes' outputs, and what the engine writes into its further turns."""

from typing import Literal

from pydantic import Field

from workflows.plan.language.frozen import Frozen, NodeId

Over = Literal["truncate", "summarise", "reference"]


class Turn(Frozen):
    """A further turn of a model that has called tools or waits for summaries; written by the engine, never by people.

    Its output stands for that of `node`, the turn before. `transcript` is the digest of what was said so far,
    `results` a reference to the results of the calls in it, and `refused` says why others were not made, by call id.
    `summaries` is a reference to the ends of the nodes that sum up what is too long for the prompt.
    """

    number: int
    node: NodeId
    transcript: str = ""
    results: str = ""
    refused: dict[str, str] = Field(default_factory=dict)
    summaries: str = ""


class Context(Frozen):
    """How many tokens of other nodes' outputs a model is given, and what becomes of an output that is over its share:
    it is cut, summed up by other model calls, or left for the model to read on in by calls of a tool.
    """

    tokens: int = Field(default=16_000, strict=True, ge=200, le=1_000_000)
    over: Over = "truncate"


class Excerpt(Frozen):
    """What a summary is made of; written by the engine, never by people.

    `text` is the digest of one of the `parts` of the output that the prompt of `node` calls `name`, of about `size`
    tokens; its summary may have about `tokens`.
    """

    node: NodeId
    name: str
    part: int
    parts: int
    text: str
    size: int
    tokens: int
