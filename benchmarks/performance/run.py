"""The parts of the benchmark by name, and the commands that run them."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from benchmarks.performance import costs, crowd, page, ratios, scale
from benchmarks.performance.table import Part

Measure = Callable[[int], Awaitable[Part]]
PARTS: dict[str, Measure] = {
    "ratios": ratios.measure,
    "crowd": crowd.measure,
    "scale": scale.measure,
    "costs": costs.measure,
}
WITH_PEERS: dict[str, Measure] = {**PARTS, "ratios": partial(ratios.measure, with_peers=True)}


async def parts(arguments: Sequence[str], *, to_page: bool = False) -> int:
    """`make bench ARGS="parts scale"`: measure and print these parts, or all; 1 if a goal that
    is asserted is missed.

    With `to_page` the peers take part, and each part is written into the page
    as soon as it is there.
    """
    options = _options("page" if to_page else "parts", arguments)
    met = True
    for name in options.parts or PARTS:
        part = await (WITH_PEERS if to_page else PARTS)[name](options.repeats)
        print(part.text(), end="\n\n", flush=True)
        if to_page:
            page.write(name, part, page.machine(with_peers=name == "ratios"))
        met = met and part.met
    return 0 if met else 1


async def peers(arguments: Sequence[str]) -> int:
    """`make bench-peers`: the ratios with the peers in the same run."""
    part = await WITH_PEERS["ratios"](_options("peers", arguments).repeats)
    print(part.text())
    print(f"\nFaster than Sennit:\n{part.more['faster']}\n\n{page.machine(with_peers=True)}")
    return 0 if part.met else 1


def _options(name: str, arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}")
    parser.add_argument(
        "--repeats", type=int, default=3, help="how often each is timed; the median counts"
    )
    if name != "peers":
        parser.add_argument(
            "parts", nargs="*", metavar="PART", choices=[*PARTS, []], help=f"{', '.join(PARTS)}"
        )
    return parser.parse_args(arguments)
