"""`make bench ARGS=library`: the programs of `examples/programs` on simulated latencies, without server and clock.

Each program does its typical work with fakes. How long a call takes and what it says is drawn by the call and the seed,
so it depends on nothing that went before: two programs that make the same call wait the same time for it.
"""

import asyncio
import json
import math
import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sennit.activities.providers.prices import DEFAULTS, price_of
from sennit.testing import run_async
from sennit.testing.clock import VirtualLoop

PROGRAMS = Path(__file__).parents[1] / "examples" / "programs"
SEEDS = 100
MODEL = f"anthropic:{DEFAULTS['anthropic']}"
LATENCY = {"llm": (4.0, 0.8), "agent": (25.0, 0.8), "python": (3.0, 0.5), "ask": (120.0, 0.8)}
"""Median in seconds, and sigma of the logarithm; other tools take about as long as a search."""
SEARCH = (1.0, 0.6)
CHARACTERS = 4
"""Of a token."""


@dataclass(frozen=True, slots=True)
class Played:
    """One run of a program. `alone` is how long its calls take one after the other; those that were cancelled count for
    as long as they ran.
    """

    answer: Any
    calls: int
    wall: float
    alone: float
    dollars: float


class World:
    """What fakes share: how long each call takes, what it says, and what all have cost."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.calls = 0
        self.alone = 0.0
        self.dollars = 0.0

    def fake(self, name: str, says: Callable[..., Any]) -> Callable[..., Any]:
        """Return a fake that takes its time and then says what `says` does; that gets a die, and the call."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            die = random.Random(f"{self._seed} {json.dumps([name, args, kwargs], sort_keys=True, default=str)}")
            median, sigma = LATENCY.get(name, SEARCH)
            began = asyncio.get_running_loop().time()
            self.calls += 1
            try:
                await asyncio.sleep(die.lognormvariate(math.log(median), sigma))
            finally:
                self.alone += asyncio.get_running_loop().time() - began
                said = says(die, *args, **kwargs)
                self.dollars += _dollars([args, kwargs], said) if name in ("llm", "agent") else 0
            return said

        return call


def _dollars(arguments: Any, result: Any) -> float:
    prompt, written = (len(json.dumps(each, default=str)) / CHARACTERS for each in (arguments, result))
    read, wrote = price_of(MODEL) or (0, 0)
    return (prompt * read + written * wrote) / 1e12


def text(die: random.Random) -> str:
    """Return a reply of a usual length."""
    return "word " * die.randint(60, 300)


def passages(die: random.Random, query: str, k: int) -> dict[str, Any]:
    """Return what a search finds."""
    items = [{"path": f"{n}.md", "title": "A", "passage": text(die), "score": 1.0} for n in range(k)]
    return {"query": query, "count": k, "items": items}


def figures(die: random.Random, _: str, hits: dict[str, Any], **__: Any) -> dict[str, Any]:
    """Say the figure: seven of ten first passages have it."""
    found = hits["count"] > 1 or die.random() < 0.7
    return {"found": found, **({"value": 1.0, "unit": "km", "source": "a.md"} if found else {})}


def topic(die: random.Random, *_: Any, schema: Any = None, role: str = "") -> Any:
    """Write; every second page is good."""
    if role == "critic":
        return {"good": die.random() < 0.5, "faults": [text(die)]}
    return [f"question {n} {text(die)}" for n in range(5)] if schema else text(die)


def race(die: random.Random, *_: Any, schema: Any = None, **__: Any) -> Any:
    """Answer well."""
    return {"good": True, "why": "it does"} if schema else text(die)


def best_of(die: random.Random, prompt: str, *_: Any, schema: Any = None, **__: Any) -> Any:
    """Write code."""
    return 1 if schema else f"{prompt} {text(die)}"


def python(die: random.Random, **_: Any) -> dict[str, Any]:
    """Test it: three of ten pass."""
    return {"exit_code": int(die.random() > 0.3), "stderr": "AssertionError", "stdout": ""}


def debate(die: random.Random, *_: Any, schema: Any = None, **__: Any) -> Any:
    """Argue; the judge is convinced every second time."""
    return {"winner": die.choice(["open", "open", "for", "against"]), "why": text(die)} if schema else text(die)


def team(die: random.Random, _: str, __: str, ledger: list[Any], schema: Any = None) -> Any:
    """Give two rounds of three orders, and be done."""
    orders = [{"member": "reader", "goal": f"part {len(ledger)} {n}"} for n in range(3)]
    return {"done": len(ledger) >= 6, "answer": text(die), "orders": orders} if schema else text(die)


def vote(die: random.Random, *_: Any, **__: Any) -> dict[str, str]:
    """Be right four times of five."""
    return {"answer": "42" if die.random() < 0.8 else die.choice(["41", "43"])}


def map_reduce(die: random.Random, *_: Any, schema: Any = None, **__: Any) -> Any:
    """Note what a document says; one of five is unclear."""
    return {"answer": text(die), "confidence": 0.5 if die.random() < 0.2 else 0.9} if schema else text(die)


def research(die: random.Random, _: str, *material: Any, schema: Any = None) -> Any:
    """Ask in two rounds."""
    if schema is None:
        return text(die)
    return {"enough": len(material[1]) > 10, "questions": [f"question {len(material[1])} {n}" for n in range(8)]}


def blackboard(die: random.Random, _: str, __: str, board: list[str], schema: Any = None) -> Any:
    """Add a line while the board is short."""
    if schema:
        return None if len(board) > 5 and die.random() < 0.5 else "so " * 20
    return text(die)


def overlap(die: random.Random, _: str, __: str, found: list[Any], schema: Any = None) -> Any:
    """Decide on the next query; seven of ten guesses are right."""
    if schema is None:
        return text(die)
    if "enough" in schema:
        return {"enough": len(found) == 4, "query": f"query {len(found)}"}
    return {"query": f"query {len(found)}" if die.random() < 0.7 else "another"}


def subagents(die: random.Random, _: str, goal: str, *__: Any, schema: Any = None) -> Any:
    """Split in three."""
    return {"split": True, "parts": [f"{goal}{n}" for n in range(3)]} if schema else text(die)


def _says(said: Any) -> Callable[..., Any]:
    return lambda *_, **__: said


def _writes(die: random.Random, *_: Any, **__: Any) -> str:
    return text(die)


_NO_LIMITS = _says({"tokens": None, "calls": None, "cost_usd": None})
_SEARCH = {"search": passages}
_AGENT = {"agent": _writes, **{name: _says(None) for name in ("search", "read", "list_files", "calculate", "table")}}
_FILES = {"list_files": _says({"items": [{"path": f"{n}.md"} for n in range(20)]}),
          "read": lambda die, **_: {"text": text(die) * 8}}  # fmt: skip
WORK: dict[str, tuple[dict[str, Any], dict[str, Callable[..., Any]]]] = {
    "figures": ({"names": list("abcdef")}, {"llm": figures, "table": _says({"text": "table"}), **_SEARCH}),
    "topic": ({"topic": "tides"}, {"llm": topic, "ask": _says("publish"), **_SEARCH}),
    "race": ({"goal": "goal"}, {"llm": race}),
    "best_of": ({"problem": "p", "tests": "t"}, {"llm": best_of, "python": python, "ask": _says("")}),
    "mixture": ({"goal": "goal"}, {"llm": _writes}),
    "debate": ({"question": "is it?"}, {"llm": debate, "ask": _says("so")}),
    "team": ({"goal": "goal"}, {"llm": team, **_AGENT}),
    "vote": ({"question": "6 * 7?"}, {"llm": vote}),
    "map_reduce": ({"question": "is it?"}, {"llm": map_reduce, **_FILES}),
    "research": ({"topic": "tides"}, {"llm": research, "budget_left": _NO_LIMITS, **_SEARCH}),
    "blackboard": ({"goal": "goal"}, {"llm": blackboard}),
    "overlap": ({"topic": "tides"}, {"llm": overlap, **_SEARCH}),
    "subagents": ({"goal": "x"}, {"llm": subagents, **_AGENT}),
}
"""For each program its inputs, and what its models, tools and people say."""


def played(name: str, seed: int, **inputs: Any) -> Played:
    """Run a program of the library once."""
    world, (usual, says) = World(seed), WORK[name]
    fakes = {each: said if said is _NO_LIMITS else world.fake(each, said) for each, said in says.items()}
    work = run_async((PROGRAMS / f"{name}.py").read_text(), fakes, **{**usual, **inputs})
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        answer = runner.run(work)
        wall = runner.get_loop().time()
    return Played(answer, world.calls, wall, world.alone, world.dollars)


def p95(values: Iterable[float]) -> float:
    """Return what 95 of 100 do not exceed."""
    return statistics.quantiles(values, n=20)[-1]


def times(one: Sequence[Played], other: Sequence[Played], of: Callable[..., float] = statistics.mean) -> float:
    """Return how many times sooner the second ends."""
    return of(run.wall for run in one) / of(run.wall for run in other)


def saved(votes: Sequence[Played]) -> float:
    """Return which part of the calls a vote did not need: of 15 each."""
    return 1 - sum(run.calls for run in votes) / (15 * len(votes))


def agreement(votes: Sequence[Played], others: Sequence[Played]) -> float:
    """Return in which part of the votes the answer is that of the other."""
    same = (one.answer["answer"] == other.answer["answer"] for one, other in zip(votes, others, strict=True))
    return sum(map(bool, same)) / len(votes)


def passed(runs: Sequence[Played]) -> float:
    """Return in which part of the runs some code has passed its tests, and no person was asked."""
    return sum(bool(run.answer) for run in runs) / len(runs)


def verdict(name: str, runs: Sequence[Played]) -> str:
    """Return what a program is good for, in figures."""
    seeds = range(len(runs))
    if name == "race":
        one = all_of(name, seeds, attempts=1)
        cost = statistics.mean(run.dollars for run in runs) / statistics.mean(run.dollars for run in one)
        sooner = f"{times(one, runs, statistics.median):.1f} times sooner than one attempt, {times(one, runs, p95):.1f}"
        return f"{sooner} at p95, for {cost:.1f} times the cost"
    if name == "best_of":
        one = all_of(name, seeds, attempts=1)
        return f"{passed(runs):.0%} pass their tests; of one attempt {passed(one):.0%}"
    if name == "vote":
        same = agreement(runs, all_of(name, seeds, width=15))
        return f"saves {saved(runs):.0%} of the calls; {same:.0%} of the answers are those of all 15"
    if name == "overlap":
        right = sum(run.answer["guessed"] for run in runs) / sum(run.answer["of"] for run in runs)
        return f"{right:.0%} of the guesses are right"
    return f"{statistics.mean(run.alone for run in runs) / statistics.mean(run.wall for run in runs):.1f} calls at once"


def all_of(name: str, seeds: Iterable[int], **inputs: Any) -> list[Played]:
    """Run a program of the library once for each seed."""
    return [played(name, seed, **inputs) for seed in seeds]


async def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    seeds = range(int(arguments[0]) if arguments else SEEDS)
    print(f"{'program':<12}{'calls':>6}{'wall':>9}{'p95':>9}{'one by one':>12}{'cost':>10}  verdict")
    for name in WORK:
        runs = await asyncio.to_thread(all_of, name, seeds)
        calls, wall, alone, cost = (statistics.mean(getattr(run, field) for run in runs)
                                    for field in ("calls", "wall", "alone", "dollars"))  # fmt: skip
        said = await asyncio.to_thread(verdict, name, runs)
        slow = p95(run.wall for run in runs)
        row = f"{name:<12}{calls:>6.1f}{wall:>7.1f} s{slow:>7.1f} s{alone:>10.1f} s{f'${cost:.4f}':>10}  {said}"
        print(row, flush=True)
    return 0
