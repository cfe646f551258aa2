"""How one model call is put into words, and how its reply is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from activities.llm.joiner_reply import UnreadableReply, read_reply
from activities.nodes.context import NodeOutput
from activities.prompts.joiner import Replanning
from activities.prompts.results import Result
from activities.providers import ModelReply
from activities.providers.errors import SchemaMismatch
from activities.providers.model import OUTPUT_TOKENS


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """A call whose reply is the output."""

    system: str = ""
    prompt: str = ""

    def read(self, reply: ModelReply, _progress: Callable[[str], None]) -> NodeOutput:
        """Return what the reply makes of the node."""
        return NodeOutput(_text(reply) if reply.stop == "length" else reply.output, reply.usage)


@dataclass(frozen=True, slots=True)
class JoinerFormat(PromptFormat):
    """A joiner's call. It makes `{answer, evidence}`, or `{replan: {why, nodes, answer}}` while it may replan."""

    results: Mapping[str, Result] = field(default_factory=dict)
    replanning: Replanning | None = None

    def read(self, reply: ModelReply, progress: Callable[[str], None]) -> NodeOutput:
        """Return what the reply makes of the node. Raises SchemaMismatch, with its usage."""
        if isinstance(reply.output, dict):  # the rules took over, and give an answer as it should be
            return NodeOutput(reply.output, reply.usage)
        try:
            more = (self.replanning.tools, self.replanning.nodes) if self.replanning else ()
            joined = read_reply(_text(reply), self.results, *more)
        except UnreadableReply as error:
            fault = SchemaMismatch(str(error), retryable=True)
            fault.usage = reply.usage
            raise fault from None
        for warning in joined.warnings:
            progress(warning)
        if joined.delta is None:
            return NodeOutput(joined.output, reply.usage)
        return NodeOutput(joined.delta.expansion_request, reply.usage, "replan")


def _text(reply: ModelReply) -> str:
    """Return what the model wrote, with a mark where it was cut."""
    return f"{reply.text}\n[cut at {OUTPUT_TOKENS:,} tokens]" if reply.stop == "length" else reply.text
