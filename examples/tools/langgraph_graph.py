"""A graph of LangGraph as a tool: `SENNIT_TOOLS=langgraph_graph SENNIT_TOOLS_PATH=examples/tools`.

The graph runs as one call of a node: with the node's timeout and attempts, and with what it spends in the run's budget.
A later attempt begins the graph again; what shall survive a crash by itself is better a node of the plan.
"""

import os
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from openai import AsyncOpenAI

from sennit import ToolContext, tool

ROUNDS = 3


class Essay(TypedDict):
    """The state of the graph."""

    topic: str
    text: str
    verdict: str
    rounds: int


@tool(effect="read", timeout="3m")
async def essay(topic: str, context: ToolContext) -> str:
    """Write a short text about a topic, and improve it until a reviewer is content."""
    async with AsyncOpenAI(max_retries=0) as client:

        async def asked(prompt: str) -> str:
            reply = await client.chat.completions.create(
                model=os.environ["ESSAY_MODEL"], messages=[{"role": "user", "content": prompt}]
            )
            if reply.usage is not None:
                context.spent(tokens=reply.usage.total_tokens)
            return reply.choices[0].message.content or ""

        async def write(state: Essay) -> dict[str, object]:
            context.progress(f"round {state['rounds'] + 1}")
            text = await asked(f"Write about {state['topic']}. Mind this: {state['verdict']}")
            return {"text": text, "rounds": state["rounds"] + 1}

        async def review(state: Essay) -> dict[str, object]:
            return {"verdict": await asked(f"Say OK, or what to improve: {state['text']}")}

        def is_over(state: Essay) -> str:
            return END if state["verdict"].strip() == "OK" or state["rounds"] == ROUNDS else "write"

        graph = StateGraph(Essay)
        graph.add_node("write", write)
        graph.add_node("review", review)
        graph.add_edge(START, "write")
        graph.add_edge("write", "review")
        graph.add_conditional_edges("review", is_over, [END, "write"])
        begun = Essay(topic=topic, text="", verdict="nothing yet", rounds=0)
        result = await graph.compile().ainvoke(begun)
    return str(result["text"])
