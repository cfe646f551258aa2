"""Deep research, as wide as the budget allows: rounds of questions, each looked up on its own.

Source: Flash-Searcher, "Fast and Effective Web Agents via DAG-Based Parallel Execution" (2025).
Shape: a planner writes the open questions of a round; they are looked up side by side, and decide the next round.
Guarantees: a round is never wider than what is left pays for, with enough kept back for the report.
Cost: a plan a round, a search and a call a question, and a report; `--budget calls=40` bounds them all.
"""

PLAN = {"enough": bool, "questions": list[str]}


async def look(question: str) -> dict:
    hits = await search(query=question, k=5)
    answer = await llm("Answer from the passages alone, with the path of each.", question, hits)
    return {"question": question, "answer": answer}


async def width(most: int) -> int:
    left = await budget_left()
    return most if left["calls"] is None else max(0, min(most, left["calls"] // 2 - 2))


async def main(topic: str, rounds: int = 3, most: int = 8) -> str:
    notes = []
    for number in range(1, rounds + 1):
        phase(f"round {number}")
        wide = await width(most)
        if wide < 1:
            break
        prompt = f"At most {wide} questions still open on the topic that can be looked up, or enough."
        plan = await llm(prompt, topic, notes, schema=PLAN)
        if plan["enough"]:
            break
        ends = await settled([task(look, question=question) for question in plan["questions"][:most][:wide]])
        notes += [end["value"] for end in ends if end["status"] == "succeeded"]
    phase("report")
    return await llm("Write a report from these notes alone, with their paths.", topic, notes)
