"""Two sides argue, a judge decides, as early as one side convinces.

Source: "Encouraging Divergent Thinking in Large Language Models through Multi-Agent Debate" (2023).
Shape: in each round both sides write at once and read the whole record; the judge rules after each round.
Guarantees: it ends after `rounds` rounds. A debate that nobody wins goes to a person, with the record.
Cost: at most three calls a round; the time of two calls a round.
"""

from typing import Literal

SIDES = ("for", "against")
RULING = {"winner": Literal["for", "against", "open"], "why": str}


async def argue(question: str, side: str, record: list) -> str:
    return await llm(f"Argue {side} it in three sentences. Meet what was said.", question, record, role="critic")


async def main(question: str, rounds: int = 3) -> dict:
    record = []
    for number in range(1, rounds + 1):
        phase(f"round {number}")
        said = await parallel([task(argue, question=question, side=side, record=record) for side in SIDES])
        record += [{"side": side, "says": says} for side, says in zip(SIDES, said, strict=True)]
        ruling = await llm("Has one side convinced you, and why?", question, record, schema=RULING, role="judge")
        if ruling["winner"] != "open":
            return {**ruling, "rounds": number}
    why = await ask("The judge could not decide. What do you decide, and why?", question, record)
    return {"winner": "open", "why": why, "rounds": rounds}
