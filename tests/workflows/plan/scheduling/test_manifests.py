"""The value of a join: bookkeeping, as long as those that read it can have the references in their inputs."""

import json
from typing import Any

import pytest
from doubles.plan.play import Fields, Play, join, node, when

from sennit.workflows.plan.limits import (
    MAX_MANIFEST_BYTES,
    MAX_MANIFEST_LEVELS,
    MAX_ONLY_MANIFEST_BYTES,
    MAX_ONLY_READ_NODES,
    MAX_READ_NODES,
)
from sennit.workflows.plan.scheduling.events import Outcome
from sennit.workflows.plan.scheduling.snapshot import dump

DIGEST = "d" * 40


def joined(inputs: int, *readers: Fields, answer: str = "j", policy: str = "all", **fields: Any) -> list[str]:
    """Return what follows when all inputs of a join have a value."""
    names = [f"n{place}" for place in range(inputs)]
    run = Play(*map(node, names), join("j", *names, policy=policy, **fields), *readers, answer=answer)
    run.begin()
    for name in names[:-1]:
        run.ok(name, digest=DIGEST)
    return run.ok(names[-1], digest=DIGEST)


def reading(count: int, inputs: int) -> list[Fields]:
    """Nodes that read the join, which is the node behind its inputs."""
    return [node(f"z{place}", "j", reads=[inputs]) for place in range(count)]


@pytest.mark.parametrize("policy", ["all", "settled"])
def test_sixty_four_inputs_stand_in_the_input_of_a_consumer_and_many_more_are_stored(policy: str) -> None:
    half = MAX_READ_NODES // 2
    assert joined(half, *reading(2, half), answer="z0", policy=policy)[0] == "close j"
    many = MAX_MANIFEST_BYTES // 80
    assert joined(many, *reading(2, many), answer="z0", policy=policy) == ["start j"]


def test_one_consumer_has_in_its_input_what_else_only_another_activity_had_in_its_own() -> None:
    many = MAX_MANIFEST_BYTES // 40
    assert joined(many, *reading(1, many), answer="z0")[0] == "close j"
    assert joined(many, *reading(2, many), answer="z0") == ["start j"]
    most = MAX_ONLY_MANIFEST_BYTES // 43 + 1
    assert joined(most, *reading(1, most), answer="z0") == ["start j"]
    model = [{**each, "kind": "llm"} for each in reading(1, many)]
    assert joined(many, *model, answer="z0") == ["start j"], "its further turns would have it again"


def test_one_consumer_of_many_large_joins_has_them_by_their_digests() -> None:
    """All of them in its input would be more than a payload."""
    many, some = MAX_MANIFEST_BYTES // 40, MAX_ONLY_READ_NODES + 1
    inputs, joins = [f"n{place}" for place in range(many)], [f"j{place}" for place in range(some)]
    reader = node("z", *joins, reads=[many + place for place in range(some)])
    run = Play(*map(node, inputs), *(join(name, *inputs) for name in joins), reader, answer="z")
    run.begin()
    for name in inputs[:-1]:
        run.ok(name, digest=DIGEST)
    assert run.ok(inputs[-1], digest=DIGEST) == [f"start {name}" for name in joins]


def test_with_many_consumers_it_is_stored_once() -> None:
    most = MAX_MANIFEST_BYTES // 431 - 1  # it is the answer too, and ten references take 431 bytes
    assert joined(10, *reading(most, 10))[0] == "close j"
    assert joined(10, *reading(most + 1, 10)) == ["start j"]
    each = {"id": "m", "kind": "map", "needs": ["j"], "reads": [10], "length": 2}
    assert joined(10, {**each, "cap": 2})[0] == "close j"
    assert joined(10, {**each, "cap": 1_000}) == ["start j"], "each item of a map has it in its input"


def test_one_who_only_waits_does_not_carry_it() -> None:
    assert joined(10, *(node(f"z{place}", "j") for place in range(100)))[0] == "close j"


def test_who_reads_very_many_nodes_gets_each_join_by_one_digest() -> None:
    assert joined(2, node("z", "j", reads=[2] * MAX_READ_NODES))[0] == "close j"
    assert joined(2, node("z", "j", reads=[2] * (MAX_READ_NODES + 1))) == ["start j"]


def test_the_value_of_first_is_a_digest_for_any_number_of_consumers() -> None:
    assert joined(1, *reading(1_000, 1), policy="first")[0] == "close j"


def test_joins_of_joins_are_stored_before_they_are_too_deep_to_read() -> None:
    count = 3 * MAX_MANIFEST_LEVELS
    run = Play(node("n0"), *(join(f"n{place}", f"n{place - 1}") for place in range(1, count)), answer=f"n{count - 1}")
    run.begin()
    word = run.ok("n0", digest=DIGEST)[-1]
    while word.startswith("start"):
        word = run.ok(word.removeprefix("start "), digest=DIGEST)[-1]
    depths = [
        len(run.digest(f"n{place}") or "") - len((run.digest(f"n{place}") or "").lstrip("[")) for place in range(count)
    ]
    assert (word, max(depths)) == ("end done", MAX_MANIFEST_LEVELS)


@pytest.mark.parametrize(
    ("policy", "fact", "value"),
    [
        ("all", "length", 3),
        ("settled", "length", 3),
        ("quorum", "length", 2),
        ("all", "[2].count", 12),
        ("quorum", "[1].count", 11),
        ("first", "count", 10),
        ("settled", "[1].value.count", 11),
        ("settled", "[0].status", "succeeded"),
    ],
)
def test_conditions_read_a_join_by_what_is_known_of_its_inputs(policy: str, fact: str, value: Any) -> None:
    run = Play(*map(node, "abc"), join("j", "a", "b", "c", policy=policy, quorum=2), node("z"), answer="j")
    run.graph.wanted[3] = {fact: True}
    run.begin()
    for count, name in enumerate("abc", 10):
        run.ok(name, count=count)
    assert (run.status("j"), run.state.units[3].facts) == ("succeeded", {fact: value})


def test_a_fact_that_only_the_whole_value_can_tell_needs_an_activity() -> None:
    run = Play(node("a"), join("j", "a"), node("z", "j", **when("j.[0].count", "gt", 3)), answer="z")
    run.begin()
    assert run.ok("a") == ["start j"]
    assert run.end("j", Outcome("of j", 1, {"[0].count": 4})) == ["start z"]


def test_a_join_has_facts_through_the_joins_among_its_inputs() -> None:
    nodes = [node("a"), join("i", "a", policy="first"), join("j", "i"), node("z", "j", **when("j.[0].count", "gt", 3))]
    run = Play(*nodes, answer="z")
    run.begin()
    assert run.ok("a", count=4) == ["close i", "close j", "start z"]


def test_a_manifest_costs_the_state_that_a_run_hands_on_nothing() -> None:
    """It is made again from the digests of the inputs; one whose inputs run again meanwhile is kept as it was."""
    names = [f"n{place}" for place in range(60)]
    run = Play(*map(node, names), join("j", *names), node("z"), answer=("j", "z"))
    run.begin()
    for place, name in enumerate(names):
        run.ok(name, digest=f"{place:040x}")
    manifest = run.digest("j") or ""
    assert json.loads(manifest) == [f"{place:040x}" for place in range(60)]
    assert manifest not in str(dump(run.state))
    run.crash()
    assert run.digest("j") == manifest
    run.retry("n7")
    run.crash()
    assert run.digest("j") == manifest
    assert run.ok("n7", digest=f"{7:040x}") == []
    run.retry("n7")
    assert run.ok("n7", digest="new") == ["close j~2"]


def test_the_deadline_of_a_join_of_joins_begins_as_the_first_one_closes() -> None:
    run = Play(node("a"), node("b"), join("i", "a"), join("j", "i", "b", policy="settled", deadline=50), answer="j")
    run.graph.timed = {2: [3]}
    run.begin()
    run.ok("a")
    assert run.tick(49) == []
    assert run.tick(1) == ["cancel b", "close j", "end done"]
