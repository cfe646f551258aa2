"""What the table of the library says holds, and says the same each time."""

import statistics

import pytest

from benchmarks.library import PROGRAMS, WORK, agreement, all_of, p95, played, saved, times

SEEDS = range(16)


def test_the_table_has_every_program() -> None:
    assert sorted(WORK) == sorted(path.stem for path in PROGRAMS.iterdir())


@pytest.mark.parametrize("name", WORK)
def test_a_program_takes_no_longer_than_its_calls_and_the_same_each_time(name: str) -> None:
    run = played(name, 0)
    assert 0 < run.wall <= run.alone + 1e-6
    assert run.dollars > 0
    assert played(name, 0) == run


def test_four_attempts_end_sooner_than_one() -> None:
    one, four = all_of("race", SEEDS, attempts=1), all_of("race", SEEDS)
    assert times(one, four, statistics.median) > 1.3
    assert times(one, four, p95) > 1.7
    assert all(run.wall <= alone.wall for run, alone in zip(four, one, strict=True))
    assert statistics.mean(run.calls for run in four) <= 8


def test_a_vote_saves_a_fifth_of_its_calls_and_no_answer_differs() -> None:
    votes = all_of("vote", SEEDS)
    assert saved(votes) >= 0.2
    assert agreement(votes, all_of("vote", SEEDS, width=15)) == 1
