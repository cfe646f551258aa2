"""Starts a run from a program and waits for its answer: `python examples/start_run.py "How high is Mont Blanc?"`."""

# ruff: noqa: T201  # an example prints

import asyncio
import sys

from sennit import Sennit


async def main(goal: str) -> None:
    sennit = await Sennit.local()  # starts a server and workers if none run; Sennit.connect() uses yours
    run = await sennit.start(goal=goal, docs="examples/corpus")
    async for event in run.events():
        print(event.number, event.kind, event.node, event.text)
    report = await run.result()
    print(report.answer if report.answer is not None else f"{report.status}: {report.problem}")
    for piece in report.evidence:
        print(f"[{piece.n}] {piece.source}: {piece.quote}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "Which is longer, the Nile or the Amazon?"))
