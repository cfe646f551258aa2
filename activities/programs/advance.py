"""One advance of a program."""

from activities.nodes.context import NodeContext, NodeOutput


class Programs:
    """Advances programs on this worker."""

    async def advance(self, context: NodeContext) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for."""
        raise NotImplementedError
