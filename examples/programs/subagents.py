"""Agents that hand parts of their goal to agents of their own, as deep as you allow.

Source: "ReDel: A Toolkit for LLM-Powered Recursive Multi-Agent Systems" (2024).
Shape: a task decides whether to split; if so, each part is a task of the same kind, one level deeper. Leaves are
sub-agents with tools; the way back up unites what the parts brought.
Guarantees: `depth` and four parts bound the tree. A part that fails is named in the whole and fails nothing else.
Cost: at depth 2 at most 16 sub-agents, 5 decisions and 5 unions.
"""

SPLIT = {"split": bool, "parts": list[str]}
TOOLS = ["search", "read", "list_files", "calculate"]


async def main(goal: str, depth: int = 2) -> str:
    if depth < 1:
        return await agent(goal, tools=TOOLS, budget={"tokens": 20000})
    plan = await llm("Has this parts that others can do at once? At most four.", goal, schema=SPLIT)
    parts = plan["parts"][:4] if plan["split"] else []
    if len(parts) < 2:
        return await agent(goal, tools=TOOLS, budget={"tokens": 20000})
    ends = await settled([task(main, goal=part, depth=depth - 1) for part in parts])
    brought = [{"part": part, "brought": end["value"] or end["error"]} for part, end in zip(parts, ends, strict=True)]
    return await llm("Unite what the parts brought. Say what is missing.", goal, brought)
