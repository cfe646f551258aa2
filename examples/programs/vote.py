"""Ask several times and take the answer that most give; stop as soon as no other can win.

Source: "Let's Sample Step by Step: Adaptive-Consistency for Efficient Reasoning" (2023).
Shape: small batches side by side; between batches, the lead is weighed against the votes still to come.
Guarantees: the votes that are not asked for could not have changed the answer. A vote that fails does not count.
Cost: `most` calls at worst; where the answers agree, a little over half of them.
"""

from collections import Counter


async def cast(question: str, number: int) -> str:
    vote = await llm(f"Vote {number}. Think, then answer in as few words as can be.", question, schema={"answer": str})
    return vote["answer"].strip().lower().rstrip(".")


async def main(question: str, most: int = 15, width: int = 3) -> dict:
    votes = Counter()
    asked = 0
    for start in range(0, most, width):
        batch = [number for number in range(start, start + width) if number < most]
        ends = await settled([task(cast, question=question, number=number + 1) for number in batch])
        votes.update(end["value"] for end in ends if end["status"] == "succeeded")
        asked += len(batch)
        counts = [*sorted(votes.values(), reverse=True), 0, 0]
        if counts[0] > counts[1] + most - asked:
            break
    [(winner, count)] = votes.most_common(1)
    return {"answer": winner, "votes": count, "of": asked}
