"""Write a page on a topic, and mend it until a critic finds it good.

Source: the loop of "Self-Refine: Iterative Refinement with Self-Feedback" (2023) over parallel look-ups.
Shape: questions, a look-up for each side by side, a draft, up to three rounds of review and mending.
Guarantees: nothing waits for the slowest look-up before it must. A page that is not good after three rounds asks you.
Cost: a call for the questions, a search and a call a question, and at most seven for draft, reviews and mending.
"""


async def look(question: str) -> str:
    hits = await search(query=question, k=5)
    return await llm("Answer from the passages, with the source.", question, hits)


async def main(topic: str):
    questions = await llm("Five questions that together cover the topic.", topic, schema=list[str])
    answers = await parallel([task(look, question=q) for q in questions[:5]])
    draft = await llm("Write a page.", answers)
    for _ in range(3):
        review = await llm("What is wrong with it?", draft, schema={"good": bool, "faults": list[str]}, role="critic")
        if review["good"]:
            return draft
        draft = await llm("Mend it.", draft, review["faults"])
    return await ask("Three rounds did not do. Publish anyway, or say how to go on.", draft)
