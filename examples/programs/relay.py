"""Members of a team pass a token: only who holds it works, and decides who is next.

Source: "Building Effective Agents" (2024), hand-offs between specialists.
Shape: one member at a time, with all that was done before in sight; each names the next one, or says `done`.
Guarantees: one member works at a time. The token goes to a member or to nobody; after `rounds` turns a person has it.
Cost: one call a turn.
"""

from swarm import checked

TURN = {"did": str, "next": str}


async def main(goal: str, members: list[str], rounds: int = 12) -> dict:
    record = []
    holder = members[0]
    for number in range(1, rounds + 1):
        phase(f"turn {number}")
        asked = f"You are the {holder}. Do your part of the goal, then name who is next, or write done if all is done."
        turn = await llm(asked, goal, members, record, schema=TURN)
        record.append({"by": holder, "did": turn["did"]})
        holder = checked(turn["next"], [*members, "done"])
        if holder == "done":
            return {"answer": turn["did"], "turns": number, "last": record[-1]["by"]}
    answer = await ask(f"After {rounds} turns the token is with the {holder}. What is the answer?", goal, record)
    return {"answer": answer, "turns": rounds, "last": "person"}
