"""Writes that are cut off, and writes that nobody knows the outcome of."""

from typing import Any

import pytest
from doubles.plan.play import Fields, Play, each, gate, join, node, when

from sennit.workflows.plan.scheduling import joins
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome
from sennit.workflows.plan.scheduling.retry import repeated

MADE = Outcome("made", 1)
NO_WORD = Outcome(error=("Cancelled", "the activity was cancelled"))
LOST = Outcome(error=("WorkerLost", "no worker finished it"))
UNKNOWN = Outcome(error=("UnknownOutcome", "it was cut off"))
NOT_WRITTEN = Outcome(error=("NotWritten", "it was not begun"))
NOT_STARTED = Outcome(attempts=0, again=True)


def write(name: str, *needs: str, **fields: Any) -> Fields:
    return node(name, *needs, effect="write", **fields)


def race() -> Play:
    run = Play(node("a"), write("w"), join("j", "a", "w", policy="first"), answer="j")
    run.begin()
    return run


def late(run: Play, name: str, outcome: Outcome, generation: int = 1) -> list[str]:
    """The activity of a write that was cut off comes to its end."""
    return run.act(NodeEnded(run.unit(name), generation, outcome))


@pytest.mark.parametrize(
    ("ends", "effect", "status"),
    [
        ([MADE], "made", "done"),
        ([UNKNOWN], "unknown", "partial"),
        ([NOT_STARTED], "not made", "done"),
        ([NO_WORD, MADE], "made", "done"),
        ([NO_WORD, NOT_WRITTEN], "not made", "done"),
        ([LOST, UNKNOWN], "unknown", "partial"),
        ([Outcome(error=("ToolError", "refused")), NOT_WRITTEN], "not made", "done"),
    ],
    ids=str,
)
def test_the_run_ends_when_it_is_known_what_became_of_a_write(ends: list[Outcome], effect: str, status: str) -> None:
    """The join goes on at once. What an activity's end does not say, the ledger does."""
    run = race()
    assert run.ok("a") == ["cancel w", "close j"]
    assert (run.status("w"), run.effects("w")) == ("cancelled", ["in flight"])
    *before, last = ends
    for outcome in before:
        assert late(run, "w", outcome) == ["look up w"]
    assert late(run, "w", last) == [f"end {status}"]
    assert (run.status("w"), run.effects("w")) == ("cancelled", [effect])
    assert late(run, "w", last) == []


@pytest.mark.parametrize("status", ["cancelled", "partial", "failed"])
def test_a_run_that_is_stopped_waits_for_its_writes_alone(status: Any) -> None:
    run = Play(node("a"), write("w"), write("v"), node("b", "w"), answer="b")
    run.begin()
    assert run.stop(status) == ["cancel a", "cancel w", "cancel v"]
    assert (run.ok("a"), run.retry("a"), run.tick(10**9)) == ([], [], [])
    assert late(run, "w", MADE) == []
    assert late(run, "v", NO_WORD) == ["look up v"]
    assert late(run, "v", UNKNOWN) == [f"end {status}"]
    assert (run.effects("w"), run.effects("v")) == (["made"], ["unknown"])
    assert run.status("b") == ("cancelled" if status == "cancelled" else "skipped")


def test_a_run_that_is_cancelled_while_it_ends_ends_cancelled() -> None:
    run = Play(write("w"), answer="w")
    run.begin()
    run.stop("partial")
    assert run.stop("cancelled") == []
    assert late(run, "w", MADE) == ["end cancelled"]


def test_the_end_of_the_time_waits_too() -> None:
    run = Play(write("w"), answer="w")
    run.begin()
    run.state.deadlines[-2] = 1_000
    assert run.tick(1_000) == ["cancel w"]
    assert late(run, "w", MADE) == ["end partial"]


def test_a_skipped_write_is_waited_for_and_not_repeated_unasked() -> None:
    run = Play(write("w"), gate("g"), answer="g")
    run.begin()
    assert run.give_up("w") == ["cancel w"]
    assert repeated(run.state, run.unit("w")) == [run.unit("w")]
    run.retry("w")
    assert run.status("w") == "pending"
    assert late(run, "w", MADE) == ["start w~2"]
    assert run.effects("w") == ["made"]


def test_a_lock_is_free_when_the_write_has_ended() -> None:
    locks = [("repo", True)]
    run = Play(node("a"), write("w", locks=locks), join("j", "a", "w", policy="first"), write("v", "j", locks=locks))
    run.begin()
    run.ok("a")
    assert run.ok("j") == []
    assert late(run, "w", MADE) == ["start v"]


def test_what_only_asks_has_written_nothing() -> None:
    run = Play(node("a"), write("w", approval=True), join("j", "a", "w", policy="first"), answer="j")
    run.begin()
    assert run.ok("a")[-1] == "end done"
    assert run.effects("w") == []


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ((("n1", "made"), ("n2", "unknown")), ["n1 made", "n2 unknown"]),
        ((), []),
        (None, ["unknown"]),
    ],
)
def test_a_sub_agent_tells_of_its_writes_one_by_one(told: Any, shown: list[str]) -> None:
    run = Play(node("a"), write("s", kind="agent"), join("j", "a", "s", policy="first"), answer="j")
    run.begin()
    run.ok("a")
    ending = late(run, "s", Outcome(error=("SubAgentFailed", "was cancelled"), effects=told))
    assert ending == ["end partial" if "unknown" in str(shown) else "end done"]
    assert run.effects("s") == shown


@pytest.mark.parametrize("status", ["unknown", None])
def test_a_sub_agent_that_failed_and_may_have_written_is_in_doubt(status: Any) -> None:
    run = Play(write("s", kind="agent", skip_on_error=True), node("b", "s"), answer="b")
    run.begin()
    effects = (("n1", status),) if status else None
    assert run.end("s", Outcome(error=("SubAgentFailed", "no answer"), effects=effects)) == ["park s"]
    assert run.status("s") == "in doubt"


TOLD = [
    pytest.param([write("w", skip_on_error=True), node("b", "w")], id="skip"),
    pytest.param([write("w", fallback=("f", 1, {})), node("b", "w")], id="fallback"),
    pytest.param([write("w", successor="b"), node("b", is_successor=True)], id="instead"),
    pytest.param([write("w"), join("b", "w", policy="settled")], id="settled"),
    pytest.param([write("w"), node("b", **when("w:status", "eq", "failed"))], id="condition"),
    pytest.param([write("w"), node("b", kind="llm", inputs=["w"], policy="settled")], id="model"),
]


@pytest.mark.parametrize("nodes", TOLD)
@pytest.mark.parametrize(
    ("on_failure", "end"), [("park", "park w"), ("partial", "end partial"), ("fail", "end failed")]
)
def test_nobody_is_told_of_a_write_in_doubt(nodes: list[Fields], on_failure: Any, end: str) -> None:
    """The run parks, or ends with it named. It has failed by then, and what waited for it never began."""
    run = Play(*nodes, on_failure=on_failure, answer="w")
    run.begin()
    assert run.end("w", UNKNOWN) == [end]
    if on_failure == "park":
        assert (run.status("w"), run.status("b")) == ("in doubt", "pending")
        run.crash()
        assert run.tick(1_000_000) == ["end partial"]
    assert (run.status("w"), run.status("b")) == ("failed", "skipped")
    assert (run.note("w")[0], run.effects("w")) == ("UnknownOutcome", ["unknown"])


@pytest.mark.parametrize("nodes", TOLD)
@pytest.mark.parametrize("word", ["retry", "answer"])
def test_a_person_decides_and_the_run_goes_on_as_if_nothing_had_been(nodes: list[Fields], word: str) -> None:
    run = Play(*nodes, answer="w")
    run.begin()
    run.end("w", UNKNOWN)
    assert (run.retry("w") if word == "retry" else run.answer("w", 7)) == ["start w~2"]
    run.ok("w")
    if run.status("b") == "running":
        run.ok("b")
    assert (run.decisions[-1], run.effects("w")) == ("end done", [])


def test_a_map_is_told_nothing_of_an_item_in_doubt() -> None:
    run = Play(node("l"), each("m", "l", effect="write", item_skip=True), answer="m")
    run.begin()
    run.ok("l", length=3)
    run.end("m[0]", UNKNOWN)
    run.ok("m[1]")
    assert run.end("m[2]", UNKNOWN) == ["park m[0] m[2]"]
    assert run.status("m") == "opened"
    assert run.give_up("m[0]") == ["park m[2]"]
    assert run.answer("m[2]", 1) == ["start m[2]~2"]
    assert run.ok("m[2]") == ["close m~2", "end partial"]
    assert run.effects("m[0]") == ["unknown"]


def test_a_fallback_in_doubt_is_decided_on_by_itself() -> None:
    run = Play(node("a", successor="w"), write("w", is_successor=True), answer="a")
    run.begin()
    assert run.fail("a") == ["start w"]
    assert run.end("w", UNKNOWN) == ["park w"]
    assert (run.status("a"), run.retry("w")) == ("delegated", ["start w~2"])
    assert run.ok("w") == ["end done"]


def test_a_write_whose_workers_were_lost_starts_once_more_and_is_in_doubt_then() -> None:
    run = Play(write("w", skip_on_error=True), node("b", "w"), answer="b")
    run.begin()
    assert run.end("w", LOST) == ["start w"]
    run.crash()
    assert run.end("w", LOST) == ["park w"]
    assert run.note("w") == ("UnknownOutcome", "no worker finished it; whether it took effect is not known")
    assert run.retry("w") == ["start w~2"]
    assert run.end("w", LOST) == ["start w~2"]


def test_a_read_whose_workers_were_lost_fails() -> None:
    run = Play(node("r", skip_on_error=True), answer="r")
    run.begin()
    assert run.end("r", LOST) == ["end partial"]


def test_a_cancelled_write_that_was_made_is_not_repeated_unasked_for_what_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A retry of the join would make it again, under another key."""
    for limit in ("MAX_MANIFEST_BYTES", "MAX_ONLY_MANIFEST_BYTES"):  # so that an activity stores it, and may fail
        monkeypatch.setattr(joins, limit, 0)
    run = Play(node("a"), write("w"), join("j", "a", "w", policy="quorum", quorum=1), gate("g"), answer="j")
    run.begin()
    run.ok("a")
    run.fail("j")
    assert late(run, "w", MADE) == []
    assert repeated(run.state, run.unit("j")) == [run.unit("w")]
