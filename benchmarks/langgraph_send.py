"""Agents in LangGraph: a graph that sends each its topic, and for each a graph with a node
for each of its calls.
"""

import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

Ask = Callable[[], Awaitable[str]]


class Agent(TypedDict):
    """What an agent is to do, and what its calls have said."""

    topic: str
    said: Annotated[list[str], operator.add]


class Team(TypedDict):
    """The topics, and an answer for each agent that has ended."""

    topics: list[str]
    answers: Annotated[list[str], operator.add]


def team(ask: Ask, calls: int) -> Any:
    """Return a graph that answers all topics at once, each with so many
    calls one after the other.
    """

    async def call(state: Agent) -> dict[str, list[str]]:
        del state
        return {"said": [await ask()]}

    one = StateGraph(Agent)
    names = [f"call_{place}" for place in range(calls)]
    for before, name in zip([START, *names], names, strict=False):
        one.add_node(name, call)
        one.add_edge(before, name)
    one.add_edge(names[-1], END)
    agent = one.compile()

    async def work(state: Agent) -> dict[str, list[str]]:
        ended = await agent.ainvoke({"topic": state["topic"], "said": []})
        return {"answers": ended["said"][-1:]}

    def send(state: Team) -> list[Send]:
        return [Send("work", {"topic": topic, "said": []}) for topic in state["topics"]]

    every = StateGraph(Team)
    every.add_node("work", work, input_schema=Agent)
    every.add_conditional_edges(START, send, ["work"])
    every.add_edge("work", END)
    return every.compile(checkpointer=InMemorySaver())
