"""A lead hands out work to members with tools of their own, reads what they bring, and goes on until it is done.

Source: Magentic-One, "A Generalist Multi-Agent System for Solving Complex Tasks" (2024).
Shape: rounds; in each the lead writes orders, members carry them out side by side as sub-agents, the ledger grows.
Guarantees: a member that fails is a line in the ledger, and the lead may order anew. It ends after `rounds` rounds.
Cost: a call of the lead a round, and a sub-agent an order, each with at most 20,000 tokens.
"""

MEMBERS = {"reader": ["search", "read", "list_files"], "analyst": ["calculate", "table"]}
ORDERS = {"done": bool, "answer": str, "orders": [{"member": str, "goal": str}]}


async def carry_out(member: str, goal: str) -> str:
    return await agent(goal, tools=MEMBERS[member], budget={"tokens": 20000})


async def main(goal: str, rounds: int = 5) -> str:
    ledger = []
    for number in range(1, rounds + 1):
        phase(f"round {number}")
        prompt = f"You lead {', '.join(MEMBERS)}. Give orders for what is missing, or say done and answer."
        plan = await llm(prompt, goal, ledger, schema=ORDERS)
        if plan["done"]:
            return plan["answer"]
        orders = [order for order in plan["orders"][:4] if order["member"] in MEMBERS]
        ends = await settled([task(carry_out, **order) for order in orders])
        for order, end in zip(orders, ends, strict=True):
            ledger.append({**order, "brought": end["value"] or end["error"]})
    return await llm("Answer with what the team has found. Say what is missing.", goal, ledger)
