"""`make bench ARGS=speculation`: what calls save that are made before a model asks for
them, or a person decides.

Agents call the same tools in the same order, each with what the one before has returned. That is
learned from runs of one seed, in which one call in five is another one; then agents of another seed
run, in which so many calls follow the pattern as the recall says. A turn of the model takes 1.5 s,
and a call 0.5 to 3 s. Both kinds of agents run side by side, and each is compared with itself, six
of each kind at a time: more of them keep two cores busy, and the figures would tell of that. As
many run before, so that everything is loaded. `ARGS="speculation 40"` runs so many agents for each
recall.

What a run can save at best depends on its agents, so the goals are shares of that. Of the calls
that are made early, those that follow the pattern are to be of use, all of them.

Another model asks for four calls in one reply, which takes 6 s to come. The
first call is the slow one. A third one begins with such a reply too, and thinks for half a second
before each of the two calls that usually follow its first one: these make a chain.
"""

import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.stage import Stage, stage
from benchmarks.tools import SLOWEST, STAGES, next_place, seconds_at
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.location import open_store
from sennit.activities.toolbox import load_tools
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.plan.learning.trajectory import NotedCall, Source, Trajectory, keys_of
from sennit.workflows.plan.speculation.limits import MAX_CHAIN

AGENTS = 6
TURN = 1.5
GATE = 10.0
KNOWN = 30
LEARNED_RECALL = 0.8
RECALLS = (0.8, 0.5, 0.2)
SELDOM = 0.2
"""The recall at which little can be saved: there, a run is only not to take much longer."""
MOST_LOST = 0.02
"""How much longer than without it a run with speculation may take at most then."""
IN_ONE_REPLY = (3.0, 0.5, 0.5, 0.5)
"""Seconds of the calls of one reply."""
WRITES = 2.0
"""Tokens a second, at which that reply comes."""
AT_ONCE = 6
"""Agents of each kind that run at the same time."""
CHAIN_BEGINS = "place-10"
QUICK = 0.5
"""Seconds for which the model of the chain thinks."""
SHARE_SAVED = 0.9
"""Of what speculation can save at best, so much has to be saved."""
_TOOLS = [f"walk_{name}" for name in STAGES]
_NEXT = re.compile(r'"next": ?"(place-\d+)"')
_AGENT = re.compile(r"agent (\d+) of recall (\d+)")


@dataclass
class Outcome:
    """One agent, with and without: the seconds that it took, and what speculation came to."""

    plain: float
    eager: float
    hits: int
    wasted: int

    @property
    def change(self) -> float:
        return self.eager / self.plain - 1


async def learn(state: Path, namespace: str) -> None:
    """Leave what earlier agents have taught."""
    catalogue = load_tools(["benchmarks.tools"]).catalogue()
    versions = {name: key.partition("@")[2] for name, key in keys_of(catalogue).items()}
    learned, chance = LearnedStore(open_store(state / "artifacts")), Random(1)
    for number in range(KNOWN):
        calls: list[NotedCall] = []
        for place, name in enumerate(_TOOLS):
            source = Source(argument="place", origin="constant", mark="0" * 16)
            uses: tuple[int, ...] = ()
            if place and chance.random() < LEARNED_RECALL:
                source = Source(argument="place", origin="output", call=place - 1, path="next")
                uses = (place - 1,)
            call = NotedCall(
                name=name,
                kind="tool",
                version=versions[name],
                began=3_000 * place,
                millis=1_200,
                sources=(source,),
                uses=uses,
            )
            calls.append(call)
        run = Trajectory(run=f"learned-{number}", status="done", ended=number, calls=tuple(calls))
        await learned.note(namespace, "", run)


def play(server: ModelServer) -> None:
    """Have the model ask for one call after the other, mostly with what the
    one before has returned.
    """

    def reply(asked: Asked) -> Reply:
        found = _AGENT.search(asked.text)
        count = len(asked.results)
        if found is None or count == len(_TOOLS):
            return Reply("It is done.", first_token=TURN)
        number, recall = int(found[1]), int(found[2]) / 100
        place = f"place-{number}"
        if count:
            last = _NEXT.search(asked.results[-1])
            place = last[1] if last is not None else place
        if count and not is_usual(number, recall, count):
            place = next_place(f"another {place}")
        return Reply("", calls=(Call(_TOOLS[count], {"place": place}),), first_token=TURN)

    server.on("agent", reply)
    calls = tuple(Call("bench_nap", {"seconds": seconds}) for seconds in IN_ONE_REPLY)
    server.on("in one reply", Reply("", calls=calls, rate=WRITES), results=0)
    server.on("in one reply", "It is done.", results=len(calls))
    place = CHAIN_BEGINS
    beside = calls[1:]
    begins = (Call(_TOOLS[0], {"place": place}), *beside)
    server.on("a chain", Reply("", calls=begins, rate=WRITES), results=0)
    for count, tool in enumerate(_TOOLS[1:MAX_CHAIN]):
        place = next_place(place)
        follows = Call(tool, {"place": place})
        server.on(
            "a chain", Reply("", calls=(follows,), first_token=QUICK), results=count + len(begins)
        )
    server.on("a chain", "It is done.", results=len(begins) + MAX_CHAIN - 1)


def is_usual(number: int, recall: float, count: int) -> bool:
    """Whether the call in this place of an agent's calls, which is not the first one, is what
    usually follows the one before.
    """
    return Random(f"{number}/{recall}/{count}").random() < recall


def most_hits(number: int, recall: float) -> int:
    """Return how many of an agent's calls are what usually follows."""
    return sum(is_usual(number, recall, count) for count in range(1, len(_TOOLS)))


async def agent(built: Stage, number: int, recall: float) -> Outcome:
    """Run one agent with and without speculation, side by side."""
    prompt = f"agent {number} of recall {round(100 * recall)}"
    plan = {
        "nodes": [{"id": "m", "kind": "llm", "prompt": prompt, "tools": _TOOLS, "max_turns": 10}]
    }
    plain, eager = await asyncio.gather(
        built.timed(plan, speculate="off"),
        built.timed(plan, speculate="on"),
    )
    early = ((await eager[1].result()).get("figures") or {}).get("speculation") or {}
    return Outcome(plain[0], eager[0], early.get("hits", 0), early.get("wasted", 0))


async def behind_a_gate(built: Stage, *, speculate: str) -> float:
    """Return the seconds from a person's answer to the end of the run."""
    yes = {"ref": "$g", "op": "eq", "value": "yes"}
    nodes: list[dict[str, Any]] = [{"id": "g", "kind": "gate", "question": "Which?"}]
    for name, when in (("y", yes), ("n", {"not": yes})):
        nodes.append(
            {"id": name, "kind": "tool", "tool": "think", "args": {"place": name}, "when": when}
        )
    handle = await built.start({"nodes": nodes, "answer": {"y": "$y"}}, speculate=speculate)
    await asyncio.sleep(GATE)
    began = time.perf_counter()
    await handle.execute_update("answer", {"node": "g", "value": "yes"})
    await handle.result()
    return time.perf_counter() - began


async def in_one_reply(built: Stage, *, speculate: str) -> float:
    """Return the seconds of a run whose model asks for several calls in one reply."""
    node = {"id": "m", "kind": "llm", "prompt": "Ask for all in one reply.", "tools": ["bench_nap"]}
    seconds, _ = await built.timed({"nodes": [node], "answer": "$m"}, speculate=speculate)
    return seconds


async def in_a_chain(built: Stage, *, speculate: str) -> float:
    """Return the seconds of a run whose model asks for the first call of a chain in a reply that
    takes long to come.
    """
    tools = [*_TOOLS[:MAX_CHAIN], "bench_nap"]
    node = {"id": "m", "kind": "llm", "prompt": "Go through a chain.", "tools": tools}
    seconds, _ = await built.timed({"nodes": [node], "answer": "$m"}, speculate=speculate)
    return seconds


def most_of_chain() -> float:
    """Return the seconds that the calls of the chain take, less what runs beside the first one."""
    place = CHAIN_BEGINS
    seconds = -IN_ONE_REPLY[-1]
    for _ in range(MAX_CHAIN):
        seconds += seconds_at(place)
        place = next_place(place)
    return seconds


def bound(number: int, recall: float) -> float:
    """Return how much less time an agent may take at best: every expected call begins when the one
    before it has ended, while the model thinks, and costs nothing.
    """
    place = f"place-{number}"
    plain = eager = TURN
    for count in range(len(_TOOLS)):
        is_expected = count > 0 and is_usual(number, recall, count)
        if count:
            place = next_place(place)
            if not is_expected:
                place = next_place(f"another {place}")
        seconds = seconds_at(place)
        plain += seconds + TURN

        # `eager` is when the model asks for this call.
        begins = eager
        if is_expected:
            begins -= TURN
        eager = max(eager, begins + seconds) + TURN
    return eager / plain - 1


async def main(arguments: Sequence[str]) -> int:
    """Print all figures; 1 if a goal is missed."""
    count = int(arguments[0]) if arguments else AGENTS
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with model_server() as server:
            where = {
                "OPENAI_BASE_URL": server.openai_url,
                "OPENAI_API_KEY": "any",
                "SENNIT_MODEL": "openai",
            }
            async with stage(Path(place), **where) as built:
                await learn(Path(place), built.client.namespace)
                play(server)
                await agents(built, AGENTS, RECALLS[0])
                outcomes: dict[float, list[Outcome]] = {}
                for recall in RECALLS:
                    outcomes[recall] = await agents(built, count, recall)
                behind, reply, chain = await asyncio.gather(
                    both(partial(behind_a_gate, built)),
                    both(partial(in_one_reply, built)),
                    both(partial(in_a_chain, built)),
                )
    missed = report(outcomes, *behind)
    most = IN_ONE_REPLY[0] - IN_ONE_REPLY[-1]
    missed |= report_saved("calls of one reply", *reply, most=most)
    missed |= report_saved("a chain behind a call of one reply", *chain, most=most_of_chain())
    return missed


async def agents(built: Stage, count: int, recall: float) -> list[Outcome]:
    """Run so many agents, a few at a time."""
    outcomes: list[Outcome] = []
    for begin in range(0, count, AT_ONCE):
        numbers = range(begin, min(count, begin + AT_ONCE))
        outcomes += await asyncio.gather(*(agent(built, number, recall) for number in numbers))
    return outcomes


async def both(timed: Callable[..., Awaitable[float]]) -> tuple[float, float]:
    """Return the seconds without and with speculation."""
    return await asyncio.gather(timed(speculate="off"), timed(speculate="on"))


def report_saved(name: str, plain: float, eager: float, *, most: float) -> int:
    """Print what calls save that begin while their reply comes; 1 if it is less than most of
    what they can.
    """
    print(
        f"{name}: {plain:.2f} s without, {eager:.2f} s with speculation (at most {most:.1f} s less)"
    )
    return int(plain - eager < SHARE_SAVED * most)


def report(outcomes: dict[float, list[Outcome]], plain: float, eager: float) -> int:
    """Print the figures; 1 if one misses its goal."""
    missed = False
    for recall, found in outcomes.items():
        missed |= _report_recall(recall, found)
    print(
        f"a branch behind a gate: {plain:.2f} s after the answer without, {eager:.2f} s with "
        "speculation"
    )
    missed |= plain - eager < SHARE_SAVED * SLOWEST
    return int(missed)


def _report_recall(recall: float, found: Sequence[Outcome]) -> bool:
    """Print the figures of the agents of one recall; whether one misses its goal."""
    change = statistics.median(outcome.change for outcome in found)
    best = statistics.median(bound(number, recall) for number in range(len(found)))
    seconds = statistics.median(outcome.plain for outcome in found)
    goal = SHARE_SAVED * best
    if recall == SELDOM:
        goal = MOST_LOST

    hits = sum(outcome.hits for outcome in found)
    wasted = sum(outcome.wasted for outcome in found)
    most = sum(most_hits(number, recall) for number in range(len(found)))
    print(
        f"recall {recall:.0%}: {change:+.1%} of {seconds:.1f} s (goal {goal:+.1%}, "
        f"bound {best:+.1%}); {hits} hits of {most}, {wasted} wasted"
    )
    return change > goal or hits < most
