"""Ask hundreds of voters at once, and say how the votes fall.

Source: "More Agents Is All You Need" (2024).
Shape: one task a vote, as many at once as the run's width allows; a schema and `checked` decide what counts as a vote.
Guarantees: only one of the options is ever counted. A vote that fails, or is none of them, counts as lost and no more.
Cost: `votes` calls, a few words each.
"""

from collections import Counter


def checked(value: str, options: list[str]) -> str:
    """The option that a model means, whatever its case and its full stop."""
    plain = value.strip().rstrip(".").lower()
    for option in options:
        if option.lower() == plain:
            return option
    raise ValueError(f"{value!r} is none of {options}")


async def cast(question: str, options: list[str], number: int) -> str:
    said = await llm(f"Vote {number}. Give one of the options.", question, options, schema={"vote": str})
    return checked(said["vote"], options)


async def main(question: str, options: list[str], votes: int = 300) -> dict:
    most = await width(per_agent_tokens=500)
    numbers = range(1, votes + 1)
    ends = await settled([task(cast, question=question, options=options, number=each) for each in numbers], limit=most)
    counts = Counter(end["value"] for end in ends if end["status"] == "succeeded")
    if not counts:
        raise ValueError("no vote could be counted")
    [(winner, count)] = counts.most_common(1)
    return {"answer": winner, "share": round(count / counts.total(), 3), "lost": votes - counts.total()}
