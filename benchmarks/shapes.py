"""The graphs that are timed: each node with its latency in seconds and the nodes it waits for."""

import random
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """A graph by name; `latency[i]` in seconds, `needs[i]` are positions below i."""

    name: str
    latency: tuple[float, ...]
    needs: tuple[tuple[int, ...], ...]

    @property
    def critical_path(self) -> float:
        """The longest path in seconds: no schedule is shorter."""
        ends: list[float] = []
        for latency, needs in zip(self.latency, self.needs, strict=True):
            ends.append(latency + max((ends[need] for need in needs), default=0.0))
        return max(ends)

    def plan(self, tool: str = "bench_nap") -> dict[str, Any]:
        """Return the graph as a plan of tool calls; the answer is the last node."""
        nodes = [
            {"id": f"n{index}", "kind": "tool", "tool": tool, "args": {"seconds": latency},
             "needs": [f"n{need}" for need in needs]}
            for index, (latency, needs) in enumerate(zip(self.latency, self.needs, strict=True))
        ]  # fmt: skip
        return {"nodes": nodes, "answer": f"$n{len(nodes) - 1}"}


def fan(count: int, seconds: float) -> Shape:
    """One node, so many side by side, one node: what `mapped` writes as a `map`."""
    return replace(diamond(count + 2, seconds), name=f"map 1-{count:,}-1 x {seconds * 1000:.0f} ms")


def mapped(count: int, seconds: float, tool: str) -> dict[str, Any]:
    """Return the request of a run whose plan has a node, a `map` over so many items, and a node."""
    call = {"kind": "tool", "tool": tool, "args": {"seconds": seconds}}
    items = {"id": "m", "kind": "map", "over": "$input.items", "max_items": count,
    "needs": ["first"],
             "do": {**call, "args": {"seconds": "$item"}}}  # fmt: skip
    nodes = [{"id": "first", **call}, items, {"id": "last", **call, "needs": ["m"]}]
    declared = {"items": {"type": "array"}}
    return {
        "plan": {"inputs": declared, "nodes": nodes, "answer": "$last"},
        "inputs": {"items": [seconds] * count},
    }


def chain(count: int, seconds: float) -> Shape:
    """One node after the other."""
    return Shape(
        f"chain {count} x {seconds * 1000:.0f} ms",
        (seconds,) * count,
        tuple((i - 1,) if i else () for i in range(count)),
    )


def diamond(count: int, seconds: float) -> Shape:
    """One node, all but two side by side, one node."""
    middle = tuple((0,) for _ in range(count - 2))
    return Shape(
        f"diamond {count} x {seconds * 1000:.0f} ms",
        (seconds,) * count,
        ((), *middle, tuple(range(1, count - 1))),
    )


def layered(count: int, layers: int, *, seed: int = 7, seconds: float | None = None) -> Shape:
    """Random layers; each node waits for one to three of the layer before. Latencies are log-normal
    with a median of 100 ms, or all `seconds`.
    """
    random_numbers = random.Random(seed)
    width = count // layers
    latency = tuple(
        round(min(1.5, random_numbers.lognormvariate(-2.3, 0.6)), 3) for _ in range(count)
    )
    needs = []
    for index in range(count):
        before = range((index // width - 1) * width, index // width * width)
        needs.append(
            tuple(sorted(random_numbers.sample(before, random_numbers.randint(1, 3))))
            if index >= width
            else ()
        )
    if seconds is not None:
        return Shape(
            f"layers {count} / {layers} x {seconds * 1000:.0f} ms", (seconds,) * count, tuple(needs)
        )
    return Shape(f"layers {count} / {layers}, log-normal", latency, tuple(needs))


def wide(count: int, seconds: float) -> Shape:
    """All side by side, then one that waits for all."""
    return Shape(
        f"wide {count} x {seconds * 1000:.0f} ms",
        (*(seconds,) * count, 0.0),
        (*((),) * count, tuple(range(count))),
    )


def pairs(count: int, seconds: float) -> Shape:
    """Chains of two side by side, then one that waits for all."""
    needs = [(2 * pair,) if second else () for pair in range(count) for second in (False, True)]
    ends = tuple(2 * pair + 1 for pair in range(count))
    return Shape(
        f"pairs {count} x 2 x {seconds * 1000:.0f} ms", (seconds,) * (2 * count + 1), (*needs, ends)
    )


def tree(leaves: int, seconds: float) -> Shape:
    """Leaves side by side, merged two by two until one is left."""
    needs: list[tuple[int, ...]] = [()] * leaves
    while len(needs) < 2 * leaves - 1:
        first = 2 * (len(needs) - leaves)
        needs.append((first, first + 1))
    return Shape(
        f"tree of {leaves} x {seconds * 1000:.0f} ms", (seconds,) * len(needs), tuple(needs)
    )
