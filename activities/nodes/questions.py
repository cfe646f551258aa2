"""What a node asks a person, with every value in place, bound before it asks."""

from activities.nodes.context import NodeContext
from activities.storage.artifacts import ArtifactStore
from workflows.messages.contracts import NodeQuestion
from workflows.plan.language.nodes import GateNode
from workflows.plan.language.references import as_text
from workflows.plan.language.text import clean

MOST_CHARACTERS = 4_000


async def question_of(context: NodeContext, store: ArtifactStore) -> NodeQuestion:
    """Return a gate's question with its references filled in. Safe to repeat.

    Raises BindError, BodyMissing, StoreUnavailable.
    """
    node = context.node
    assert isinstance(node, GateNode)
    await context.binder.load(node, context.address)
    text = clean(as_text(context.binder.bound(node.question)))
    return NodeQuestion(text=await beginning(text, store, context.run_prefix))


async def beginning(text: str, store: ArtifactStore, run_prefix: str) -> str:
    """Return a text as a person is shown it: whole, or its beginning, how long it is, and where the whole is."""
    if len(text) <= MOST_CHARACTERS:
        return text
    place = store.place(run_prefix, await store.put(run_prefix, text.encode()))
    return f"{text[:MOST_CHARACTERS]}\n… the first {MOST_CHARACTERS:,} of {len(text):,} characters; the whole: {place}"
