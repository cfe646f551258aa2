"""Answer with the quick model where that is sure, and else with the careful one, unless too many calls wait for it.

Source: "RouteLLM: Learning to Route LLMs with Preference Data" (2024).
Shape: the quick model answers and says how sure it is; the load of the careful model's queue decides what comes next.
Guarantees: an answer that is not sure never passes as one that is. A long queue delays no question.
Cost: one call where the quick model is sure, and else two.
"""

ANSWER = {"answer": str, "sure": float}


async def main(question: str, sure: float = 0.8, busy: int = 50) -> dict:
    quick = await llm("Answer, and say from 0 to 1 how sure you are.", question, schema=ANSWER)
    if sure <= quick["sure"] <= 1:
        return {**quick, "by": "quick"}
    now_there = await load("critic")
    if now_there["running"] + (now_there["backlog"] or 0) > busy:
        log("the careful model is busy:", now_there)
        again = await llm("Think it over step by step, then answer. A first try:", quick, question, schema=ANSWER)
        return {**again, "by": "quick, twice"}
    careful = await llm("Answer, and say from 0 to 1 how sure you are.", question, schema=ANSWER, role="critic")
    return {**careful, "by": "careful"}
