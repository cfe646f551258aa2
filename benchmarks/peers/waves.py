"""A graph that is known only at run time, in LangGraph: a node sends what is ready,
and waits for all of it.
"""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    """The positions of the nodes that have ended."""

    done: Annotated[list[int], operator.add]


async def nap(call: dict[str, Any]) -> dict[str, list[int]]:
    """Take as long as the call says."""
    await asyncio.sleep(call["seconds"])
    return {"done": [call["index"]]}


async def dispatch(_: State) -> dict[str, list[int]]:
    """Do nothing: what follows decides."""
    return {"done": []}


async def ready(state: State, config: RunnableConfig) -> list[Send] | str:
    """Send every node whose needs have ended."""
    graph, done = config["configurable"]["graph"], set(state["done"])
    found = [
        Send("nap", {"index": index, "seconds": seconds})
        for index, (seconds, needs) in enumerate(zip(graph["latency"], graph["needs"], strict=True))
        if index not in done and done.issuperset(needs)
    ]
    return found or END


def waves(
    on_nap: dict[str, Any] | None = None, on_dispatch: dict[str, Any] | None = None
) -> StateGraph[State]:
    """Return the graph, its nodes with the metadata given."""
    built = StateGraph(State)
    built.add_node("nap", nap, metadata=on_nap)
    built.add_node("dispatch", dispatch, metadata=on_dispatch)
    built.add_edge(START, "dispatch")
    built.add_conditional_edges("dispatch", ready, ["nap", END])
    built.add_edge("nap", "dispatch")
    return built


def settings(graph: dict[str, Any], thread: str) -> RunnableConfig:
    """Return how the graph is run: with the nodes of `graph`, which are no
    part of what is stored.
    """
    return {
        "configurable": {"graph": graph, "thread_id": thread},
        "recursion_limit": 4 * len(graph["latency"]) + 10,
    }
