"""Several attempts at once; the first good one wins.

Source: M1-Parallel, "Optimizing Sequential Multi-Step Tasks with Parallel LLM Agents" (2025).
Shape: each way is a task of its own: an attempt, then a judge. `first` takes the first that the judge lets pass.
Guarantees: an attempt that fails or is found wanting does not end the race. The losers are cancelled at once. If nobody
wins, the run waits for you: retry an attempt, or answer in its place.
Cost: up to two calls a way; the time is that of the fastest good attempt.
"""

WAYS = (
    "Work step by step and check each step.",
    "Answer a simpler case first, then the whole.",
    "Find what could go wrong, then answer so that it does not.",
    "Write down what a good answer must have, then give it.",
)


async def attempt(goal: str, way: str) -> str:
    answer = await llm(f"Do what is asked. {way}", goal)
    verdict = await llm("Is this done in full?", goal, answer, schema={"good": bool, "why": str}, role="judge")
    if not verdict["good"]:
        raise ValueError(verdict["why"])
    return answer


async def main(goal: str, attempts: int = 4) -> str:
    return await first([task(attempt, goal=goal, way=way) for way in WAYS[:attempts]])
