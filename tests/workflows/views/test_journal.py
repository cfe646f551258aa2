"""The journal of a run: its numbers, and what of it may be told already."""

from collections.abc import Iterator

from doubles.plan.play import Play, each, gate, node

from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.messages.views import RunEvent
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import Outcome, PlanReplaced
from sennit.workflows.plan.scheduling.session import Advance, Session
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import Unit
from sennit.workflows.views.journal import LOG_CHARACTERS, PAGE_EVENTS, Journal, Moment, RunLog


class Clock:
    """The workflow task and the time that a journal sees."""

    def __init__(self) -> None:
        self.now = Moment(3, 1_000)

    def __call__(self) -> Moment:
        return self.now


def told(journal: Journal, after: int = 0, through: int | None = None) -> list[str]:
    return [f"{event.number} {event.kind} {event.node}".rstrip() for event in journal.page(after, through).events]


def test_only_what_the_history_has_recorded_is_told() -> None:
    clock, play = Clock(), Play(node("a"), gate("g", "a"), answer="g")
    journal = Journal(clock)
    play.begin()
    journal.observe(play.state, {})
    clock.now = Moment(9, 2_000)
    play.ok("a")
    journal.observe(play.state, {0: NodeReply(ref="of a", preview="short")})
    assert told(journal) == ["1 planned", "2 started a", "3 succeeded a"]
    assert told(journal, through=8) == ["1 planned", "2 started a"]
    assert journal.page(0, 8).following == 3
    assert journal.page(2).events[0].text == "short"


def test_numbers_go_on_in_the_next_run_and_jump_after_a_reset() -> None:
    clock, play = Clock(), Play(node("a"), answer="a")
    play.begin()
    journal = Journal(clock, 40)
    journal.restore(play.state)
    journal.observe(play.state, {})
    assert told(journal) == []
    play.ok("a")
    journal.observe(play.state, {})
    assert told(journal) == ["40 succeeded a"]
    clock.now = Moment(20, 9_000)
    journal.reset()
    journal.ended("done")
    assert told(journal, 40) == ["9000 reset", "9001 ended"]
    assert journal.page(40).ended


def test_what_a_replay_could_order_otherwise_needs_a_command() -> None:
    journal = Journal(Clock())
    item = BlockedOn(node="g", why="gate", question="?", update="answer", example={}, command="")
    assert journal.ask([item])
    assert not journal.ask([item])
    assert journal.ask([])
    assert not journal.ask([])


def test_a_page_ends_where_the_next_one_begins() -> None:
    journal = Journal(Clock())
    for _ in range(PAGE_EVENTS + 2):
        journal.note("answered", update="finish")
    first = journal.page(0).events
    assert len(first) == PAGE_EVENTS
    assert [event.number for event in journal.page(first[-1].number).events] == [PAGE_EVENTS + 1, PAGE_EVENTS + 2]


class Story:
    """A run by hand with its journal: what each step has noted."""

    def __init__(self, play: Play) -> None:
        self.play, self._journal, self._last = play, Journal(Clock()), 0

    def noted(self, reply: NodeReply | None = None, kept: dict[int, NodeReply] | None = None) -> list[RunEvent]:
        self._journal.observe(self.play.state, kept or {}, reply)
        found = self._journal.page(self._last).events
        self._last = found[-1].number if found else self._last
        return list(found)

    def words(self) -> list[str]:
        return [f"{event.kind} {event.node or event.nodes} ~{event.generation}" for event in self.noted()]


def test_a_plan_in_the_place_of_one_that_had_begun_is_told_before_its_nodes() -> None:
    play = Play(node("a"), node("b", "a"), answer="b")
    story = Story(play)
    play.begin()
    assert story.words() == ["planned 2 ~1", "started a ~1"]
    play.act(PlanReplaced(Graph(ExecutionPlan([NodeSpec(id="a", kind="tool")], [0]))))
    found = story.noted()
    assert [(event.kind, event.nodes, event.status, event.node) for event in found] == [
        ("planned", 1, "replaced", ""),
        ("started", 0, None, "a"),
    ]


def test_a_plan_that_grows_is_not_replaced() -> None:
    play = Play(node("a"), answer="a")
    story = Story(play)
    play.begin(more=True)
    story.noted()
    play.grow(node("b"), node("c"), answer="c")
    found = story.noted()
    assert [(event.kind, event.nodes, event.status) for event in found[:1]] == [("planned", 2, None)]
    assert [event.node for event in found[1:]] == ["b", "c"]


def test_each_start_is_told_also_one_in_the_step_that_has_stopped_the_node() -> None:
    play = Play(node("a"), node("b", "a"), answer="b")
    story = Story(play)
    play.begin()
    story.noted()
    play.end("a", Outcome(again=True, attempts=0))
    assert story.words() == ["started a ~1"]
    play.ok("a")
    assert story.words() == ["succeeded a ~1", "started b ~1"]
    play.retry("a")
    assert story.words() == ["started a ~2"]
    play.ok("a", digest="another")
    assert story.words() == ["succeeded a ~2", "started b ~2"]


def test_a_map_starts_once_though_it_has_its_value_at_the_end() -> None:
    play = Play(node("a"), each("m", "a"), answer="m", window=1)
    story = Story(play)
    play.begin()
    play.ok("a", length=1)
    assert "started m ~1" in story.words()
    play.ok("m[0]")
    assert story.words() == ["succeeded m ~1", "succeeded m[0] ~1"]


def test_a_success_shows_the_output_that_the_node_has_and_no_other() -> None:
    play = Play(node("a", fallback=("static", 1, {})), node("b"), node("c", "a", "b"), answer="c")
    story = Story(play)
    play.begin()
    story.noted()
    play.ok("b")
    [told_of_b, *_] = story.noted(NodeReply(ref="of b", preview="not kept"))
    assert (told_of_b.node, told_of_b.text) == ("b", "not kept")
    play.fail("a")
    [told_of_a, *_] = story.noted(kept={0: NodeReply(ref="of a", preview="before")})
    assert (told_of_a.kind, told_of_a.node, told_of_a.text) == ("succeeded", "a", "")


class _Unseen(dict[int, Unit]):
    """Units that nobody may look through."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("a step has cost more than what it concerns")

    values = items = keys = __iter__  # type: ignore[assignment]


def test_a_step_costs_no_look_at_other_nodes() -> None:
    play = Play(*(node(f"n{number}") for number in range(50)), answer="n49")
    story = Story(play)
    play.begin()
    story.noted()
    unseen = _Unseen()
    unseen |= play.state.units
    play.state.units = unseen
    play.ok("n7")
    assert story.words() == ["succeeded n7 ~1"]


def test_the_log_keeps_the_last_of_it_and_says_once_what_an_advance_says_again() -> None:
    state = RunState(Graph(ExecutionPlan([NodeSpec("a", "program"), NodeSpec("b", "program")], [0])))
    state.sessions = {0: Session([Advance(), Advance("s2")]), 1: Session()}
    log = RunLog()
    for lines in (("old", "two"), ("x",)):
        log.note("s2", lines)
    log.note("b", ("three",))
    log.note("s3", ("of an advance that the script is not in any more",))
    assert log.lines(state) == ("x", "three")
    log.note("s2", ())
    log.note("s3", ())
    assert log.lines(state) == ("three",)
    log.note("s2", ("y" * LOG_CHARACTERS, "zz"))
    assert log.lines(state) == ("(2 earlier lines of the log cut)", "zz")
    assert RunLog(log.advances, log.cut).lines(state) == log.lines(state)
