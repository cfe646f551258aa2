"""Thousands of schedules from seeds; `SENNIT_SCHEDULES=1000` plays more. A failing seed is named, and `SENNIT_SEED=n`
runs that one alone.
"""

import os
import subprocess
import sys
from pathlib import Path

from simulation.simulator import Habits, Simulation, Story

from sennit.workflows.plan.scheduling.events import NodeEnded

SCHEDULES = int(os.environ.get("SENNIT_SCHEDULES", "400"))
ROOT = Path(__file__).parents[2]

CRASHING = Habits(edits=12, crashes=25, failing=15)
UNRULY = Habits(edits=40, stops=1, failing=25)


def seeds(share: int = 1) -> list[int]:
    """Return the seeds to run: one in `share`, or the one asked for."""
    if "SENNIT_SEED" in os.environ:
        return [int(os.environ["SENNIT_SEED"])]
    return list(range(0, SCHEDULES * share, share))


def play(seed: int, habits: Habits, order: int | None = None) -> Story:
    """Run one schedule; a failure names its seed."""
    simulation = Simulation(seed, habits, order=order)
    story = None
    try:
        story = simulation.run()
    finally:
        if story is None:
            print(f"run again with SENNIT_SEED={seed}; the last decisions:", *simulation.story.log[-4:], sep="\n")
    return story


def test_a_run_that_dies_at_any_event_and_goes_on_from_its_snapshot_decides_as_if_it_had_not() -> None:
    """The same seed with a crash at every fourth event and with none, people interfering in both."""
    calm = Habits(**{**vars(CRASHING), "crashes": 0})
    for seed in seeds():
        crashed, whole = play(seed, CRASHING), play(seed, calm)
        assert crashed.log == whole.log, f"SENNIT_SEED={seed}"
        assert (crashed.statuses, crashed.digests) == (whole.statuses, whole.digests), f"SENNIT_SEED={seed}"


def test_the_order_in_which_calls_end_does_not_change_the_result() -> None:
    """Without joins that close early, every node ends the same in any order, under any window."""
    habits = Habits(early=False, repairs=0)
    for seed in seeds(3):
        first, second = play(seed, habits, order=1), play(seed, habits, order=2)
        assert first.end == second.end, f"SENNIT_SEED={seed}"
        assert first.statuses == second.statuses, f"SENNIT_SEED={seed}"
        assert first.digests == second.digests, f"SENNIT_SEED={seed}"


def test_whatever_people_do_every_run_ends_and_every_result_is_made_of_what_is_there() -> None:
    """Edits at nearly every other event: retries of anything, give-ups, late results, cancellations."""
    ends = {play(seed, UNRULY).end for seed in seeds(7)}
    assert "SENNIT_SEED" in os.environ or ends == {"done", "partial", "failed", "cancelled"}


def test_a_plan_that_comes_in_pieces_ends_as_a_whole_one_does() -> None:
    """Without joins that close early; people and crashes may come between the pieces elsewhere."""
    habits = Habits(early=False, repairs=0)
    for seed in seeds(13)[:400]:
        pieces = play(seed, Habits(**{**vars(habits), "grows": 30}), order=1)
        whole = play(seed, habits, order=2)
        assert (pieces.end, pieces.statuses, pieces.digests) == (whole.end, whole.statuses, whole.digests), seed


def test_whatever_people_do_while_a_plan_grows_every_result_is_made_of_what_is_there() -> None:
    for seed in seeds(17)[:400]:
        play(seed, Habits(edits=25, stops=1, failing=20, grows=15))


def test_what_activities_tell_before_their_end_changes_no_result() -> None:
    """Crashes come in between, and a run that dies goes on as one that does not."""
    plain, told = Habits(early=False, repairs=0, most=30), 0
    for seed in seeds(29)[:200]:
        one = play(seed, Habits(**{**vars(plain), "tells": 80, "crashes": 20}), order=1)
        two = play(seed, plain, order=2)
        told += sum(isinstance(event, NodeEnded) and event.more for _, event, _ in one.log)
        assert (one.end, one.statuses, one.digests) == (two.end, two.statuses, two.digests), seed
    assert "SENNIT_SEED" in os.environ or told > 50


def test_whatever_people_do_every_result_is_made_of_what_is_there() -> None:
    for seed in seeds(23)[:400]:
        crashed = Habits(edits=30, stops=1, failing=20, crashes=20)
        calm = Habits(**{**vars(crashed), "crashes": 0})
        one, two = play(seed, crashed), play(seed, calm)
        assert (one.end, one.statuses, one.digests) == (two.end, two.statuses, two.digests), seed


def test_a_look_at_a_run_between_every_two_events_changes_no_decision() -> None:
    """The board and the queries are worked out after each event, and in the other schedule never.

    With seed 46, places that a look had sorted would change in which order nodes are cancelled.
    """
    unseen = Habits(edits=10, failing=40, grows=30, most=25)
    seen = Habits(**{**vars(unseen), "looks": True})
    for seed in [46, *seeds(37)[:60]]:
        looked_at, alone = play(seed, seen), play(seed, unseen)
        assert looked_at.log == alone.log, f"SENNIT_SEED={seed}"


def test_a_cancelled_run_leaves_nothing_running() -> None:
    """The simulator checks that every call in flight was cancelled by name."""
    for seed in seeds(11)[:200]:
        story = play(seed, Habits(stops=40))
        assert story.end in ("done", "partial", "failed", "cancelled")


def test_decisions_do_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds write the same log of decisions."""
    code = (
        "from simulation.simulator import *\n"
        "for seed in range(60): print(Simulation(seed, Habits(edits=20, failing=20)).run().log)"
    )
    logs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
            capture_output=True,
            check=True,
        ).stdout
        for number in ("1", "4242")
    ]
    assert logs[0] == logs[1]
    assert len(logs[0]) > 10_000
