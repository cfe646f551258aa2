"""Act while the planner still thinks: the step that a fast model expects is carried out meanwhile.

Source: "Interactive Speculative Planning" (2024) and "Speculative Actions" (2025).
Shape: in each step a fast model guesses the next query, and its search runs while the planner decides.
Guarantees: the result is the planner's, with or without guesses: a wrong guess is dropped. Only reads are guessed.
Cost: one call of a fast model a step, named with `model=`, and a search for each wrong guess; a right guess saves the
time of its search.
"""

STEP = {"enough": bool, "query": str}


async def main(topic: str, steps: int = 4) -> dict:
    found = []
    right = 0
    for _ in range(steps):
        guess = await llm("The next query, in a few words.", topic, found, schema={"query": str})
        early = task(search, query=guess["query"], k=3)
        step = await llm("The next query, in a few words, or enough.", topic, found, schema=STEP)
        if step["enough"]:
            break
        is_right = step["query"] == guess["query"]
        hits = await early if is_right else await search(query=step["query"], k=3)
        right += is_right
        found.append({"query": step["query"], "hits": hits["items"]})
    return {"answer": await llm("Answer from what was found.", topic, found), "guessed": right, "of": len(found)}
