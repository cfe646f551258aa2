"""A verdict with its uncertainty: a judge in doubt asks another one, and if both are in doubt a person decides.

Source: "Trust or Escalate: LLM Judges with Provable Guarantees for Human Agreement" (2024).
Shape: judges one after the other, from the first to the last role, and then a person who sees all verdicts.
Guarantees: a verdict with more doubt than `doubt` decides nothing. Whoever decides is named.
Cost: one call where the first judge is sure; two calls, and a person, where nobody is.
"""

from swarm import checked

VERDICT = {"verdict": str, "doubt": float, "why": str}


async def main(question: str, answer: str, doubt: float = 0.3) -> dict:
    verdicts = []
    for role in ("judge", "critic"):
        asked = "Is this answer right or wrong? Give your doubt, from 0 to 1, and why."
        found = await llm(asked, question, answer, verdicts, schema=VERDICT, role=role)
        verdict = checked(found["verdict"], ["right", "wrong"])
        verdicts.append({"verdict": verdict, "doubt": found["doubt"], "why": found["why"]})
        if 0 <= found["doubt"] <= doubt:
            return {**verdicts[-1], "by": role, "judges": len(verdicts)}
    decided = await ask("The judges are in doubt. right or wrong?", question, answer, verdicts)
    return {"verdict": checked(decided, ["right", "wrong"]), "by": "person", "judges": len(verdicts)}
