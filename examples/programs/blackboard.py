"""Workers write on one board, and read on it what the others wrote.

Source: "Hogwild! Inference: Parallel LLM Generation via Concurrent Attention" (2025).
Shape: turns; in each, every worker reads the board and adds a line, or says that it has nothing to add.
Guarantees: all workers of a turn see the same board, in one order, whatever came first. In the paper they see each
other's words as they are written; here they see them after each turn.
Cost: at most workers times turns calls, and one for the answer; a worker with nothing to add costs no more.
"""


async def write(goal: str, board: list, worker: int) -> str | None:
    prompt = f"You are worker {worker}. Add one line that helps and that nobody has written, or null."
    return await llm(prompt, goal, board, schema=str | None)


async def main(goal: str, workers: int = 3, turns: int = 4) -> str:
    board = []
    active = list(range(1, workers + 1))
    for turn in range(1, turns + 1):
        phase(f"turn {turn}")
        lines = await parallel([task(write, goal=goal, board=board, worker=worker) for worker in active])
        added = [(worker, line) for worker, line in zip(active, lines, strict=True) if line]
        board += [f"{worker}: {line}" for worker, line in added]
        active = [worker for worker, _ in added]
        if not active:
            break
    phase("answer")
    return await llm("Answer from the board.", goal, board)
