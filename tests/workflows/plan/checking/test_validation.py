"""A plan is judged whole before anything is spent: every rule it breaks is named at its place."""

import random
from typing import Any

import pytest
from doubles.plan.junk import anything, damage, part_at
from doubles.plan.samples import (
    CATALOGUE,
    NILE,
    PLANS,
    Drive,
    each,
    free,
    gate,
    join,
    llm,
    plan,
    sample,
    skeleton_of,
    tool,
    wanted_facts,
)
from hypothesis import given, settings

from sennit.workflows.plan.checking.inputs import bind_inputs, input_problems
from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.limits import MAX_EDGES, MAX_PLAN_PROBLEMS, MAX_SENTENCE_CHARACTERS

OFFLINE = ("offline",)


def problems(data: Any, **options: Any) -> list[Problem]:
    return problems_of(parse_plan(data), **({"catalogue": CATALOGUE, "models": OFFLINE} | options))


def compare(ref: str, op: str = "exists", *value: Any) -> dict[str, Any]:
    """A condition of one comparison."""
    return {"ref": ref, "op": op} | ({"value": value[0]} if value else {})


def when(condition: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A plan of a search and a node behind it with that condition."""
    return plan(tool(), llm("b", when=condition), **fields)


CITY = {"city": {"type": "string"}, "cities": {"type": "array"}, "n": {"type": "integer", "default": None}}
PROBLEMS: list[tuple[Any, str, str, str]] = [
    # data, code, place, fragment
    (plan(tool(needs=["a"])), "cycle", "nodes[0].needs[0]", "`a` needs itself; name another node"),
    (plan(join("j", ["j"])), "cycle", "nodes[0].inputs[0]", "`j` needs itself"),
    (plan(free("a", of="b"), free("b", of="a")), "cycle", "nodes[0]", "a cycle: a needs b needs a; take one"),
    (
        plan(free("a", when=compare("$b")), join("b", ["c"]), free("c", needs=["a"])),
        "cycle",
        "nodes[0]",
        "a needs b needs c needs a",
    ),
    (
        plan(free("a", when=compare("$b:status", "eq", "failed")), free("b", of="a")),
        "cycle",
        "nodes[0]",
        "a needs b needs a",
    ),
    (plan(tool(on_error={"instead": "b"}), free("b", of="a")), "cycle", "nodes[0]", "a needs b needs a"),
    (
        plan(*(free(f"n{number}", of=f"n{(number + 1) % 40}") for number in range(40))),
        "cycle",
        "nodes[0]",
        "n0 needs n1 needs n2 needs n3 needs n4 needs n5 needs ... needs n36 needs n37 needs n38 needs n39 needs n0;",
    ),
    (plan(tool(), tool(), llm("b", "$a")), "duplicate_id", "nodes[1].id", "`a` is used 2 times, first by nodes[0]"),
    (plan(tool("input"), answer="$goal"), "reserved_id", "nodes[0].id", "`input` is reserved; choose"),
    (plan(tool(), tool("b", needs=["a", "z"])), "dangling", "nodes[1].needs[1]", "there is no node `z`; there are a"),
    (plan(tool(), join("j", ["a", "z"])), "dangling", "nodes[1].inputs[1]", "there is no node `z`; there are a"),
    (plan(llm("b", "Sum $z up")), "dangling", "nodes[0].prompt", "`$z` refers to no node; there are b; `$$z` writes"),
    (
        plan(free("a") | {"args": {"x": [{"y": "and $nyle.x"}]}}, free("nile", of="a")),
        "dangling",
        "nodes[0].args.x[0].y",
        "`$nyle` refers to no node; did you mean `nile`?",
    ),
    (plan(each(over="$z.items")), "dangling", "nodes[0].over", "`$z` refers to no node"),
    (plan(tool(), each(over="$item.x")), "dangling", "nodes[1].over", "`$item` refers to no node"),
    (when(compare("$z:status", "eq", "failed")), "dangling", "nodes[1].when.ref", "there is no node `z`; there are a"),
    (
        when({"and": [compare("$a.count"), {"or": [{"not": compare("$z")}]}]}),
        "dangling",
        "nodes[1].when.and[1].or[0].not.ref",
        "`$z` refers to no node",
    ),
    (when(compare("a.count")), "reference", "nodes[1].when.ref", '"a.count" is not a reference; write'),
    (plan(tool(on_error={"instead": "z"})), "dangling", "nodes[0].on_error.instead", "no node `z`"),
    (plan(tool(on_error={"instead": "a"})), "instead", "nodes[0].on_error.instead", "its own fallback node"),
    (plan(tool(), answer="$z"), "dangling", "answer", "`$z` refers to no node"),
    (plan(tool(), answer={"x": ["$a", "$zz"]}), "dangling", "answer.x[1]", "`$zz` refers to no node"),
    (plan(tool(), answer="a"), "answer", "answer", "has no reference; write `$node`"),
    (plan(tool(), answer="$$a"), "answer", "answer", "has no reference"),
    ({"nodes": [tool(), llm("b")]}, "answer", "", "say what `answer` is: 2 nodes have no consumer (a, b)"),
    (plan(tool(), answer=["$a", "$input.x"]), "input", "answer[1]", "no input `x`; declared: none"),
    (plan(llm("b", "Sum ${a b} up")), "reference", "nodes[0].prompt", '"${a b}" is not a reference; write ${node'),
    (
        plan(tool(), each(do={"kind": "tool", "tool": "read", "args": {"path": "${item path}"}})),
        "reference",
        "nodes[1].do.args.path",
        '"${item path}" is not a reference',
    ),
    (plan(llm("b", "$input.citi"), inputs=CITY), "input", "nodes[0].prompt", "`citi`; did you mean `cit"),
    (plan(llm("b", "$input"), inputs=CITY), "input", "nodes[0].prompt", "write `$input.name`"),
    (plan(llm("b", "${input[0]}"), inputs=CITY), "input", "nodes[0].prompt", "no input `0`; declared: city"),
    (plan(tool(), inputs={"k": {"type": "integer", "default": "3"}}), "input", "inputs.k.default", 'not "3"'),
    (plan(tool(tool="serch")), "unknown_tool", "nodes[0].tool", "no tool `serch`; did you mean `search`?"),
    (plan(tool(), each(do={"kind": "tool", "tool": "reed"})), "unknown_tool", "nodes[1].do.tool", "`read`?"),
    (plan(tool(args={"query": "x", "quary": 1})), "argument", "nodes[0].args.quary", "did you mean `query`?"),
    (plan(tool(args={"k": 3})), "argument", "nodes[0].args", "search: `query` is missing"),
    (plan(tool(args={"query": 7})), "argument", "nodes[0].args.query", "search: wanted string, not 7"),
    (
        plan(tool(), each(do={"kind": "tool", "tool": "read", "args": {"path": "$item.score"}})),
        "argument",
        "nodes[1].do.args.path",
        "`$item.score` gives number; wanted string",
    ),
    (plan(tool(), llm("b", "$a.cuont")), "path", "nodes[1].prompt", "`$a` has count, items; did you mean `count`?"),
    (plan(tool(), each(do={"kind": "llm", "prompt": "$item.pth"})), "path", "nodes[1].do.prompt", "`path`?"),
    (when(compare("$a.cuont")), "path", "nodes[1].when.ref", "did you mean `count`?"),
    (plan(tool(), each(over="$a.itms")), "path", "nodes[1].over", "did you mean `items`?"),
    (plan(tool(), join("j", ["a"], policy={"quorum": 2})), "arity", "nodes[1].policy.quorum", "with 1 inputs"),
    (plan(tool(), tool("b"), join("j", ["a", "b", "a"])), "arity", "nodes[2].inputs[2]", "`a` is named twice"),
    (plan(tool(), llm("b", inputs=["c"])), "dangling", "nodes[1].inputs[0]", "`c`"),
    (plan(tool(), each(over="$a.count")), "over", "nodes[1].over", "gives integer; a map needs a list"),
    (plan(each(over="$input.city"), inputs=CITY), "over", "nodes[0].over", "`$input.city` gives string"),
    (plan(tool(), each(over="items of $a")), "reference", "nodes[1].over", "is not a reference; write `$node.items`"),
    (plan(tool(), each(**{"as": "a"})), "reserved_id", "nodes[1].as", "`a` is a node; give the item another name"),
    (plan(tool("item"), each(over="$item.items")), "reserved_id", "nodes[1]", "`item` is a node; give the item"),
    (
        plan(tool(), each(do={"kind": "agent", "goal": "x"}, max_items=10_000)),
        "limit",
        "nodes[1].max_items",
        "10,000 items could start 10,000 sub-agents, each a run of its own; at most 1,000",
    ),
    (
        plan(
            tool(), each(do=[{"id": "p", "kind": "agent", "goal": "x"}, {"kind": "agent", "goal": "$p"}], max_items=501)
        ),
        "limit",
        "nodes[1].max_items",
        "501 items could start 1,002 sub-agents",
    ),
    (
        plan(tool(), each(do={"kind": "agent", "goal": "x", "tools": ["serch"]})),
        "unknown_tool",
        "nodes[1].do.tools[0]",
        "there is no tool `serch`",
    ),
    (
        plan(tool(), each(do={"kind": "llm", "prompt": "x", "on_error": {"instead": "a"}})),
        "instead",
        "nodes[1].do.on_error.instead",
        "`a` is no other node of this `do`; name one by its id there",
    ),
    (
        plan(tool(), each(do={"kind": "llm", "prompt": "x", "context": {"over": "reference"}}, max_items=1_001)),
        "limit",
        "nodes[1].max_items",
        "1,001 items could start 1,001 sub-agents",
    ),
    (
        plan(tool(), llm("b", "$a", context={"over": "reference"}, on_error={"instead": "c"}), tool("c")),
        "instead",
        "nodes[1]",
        "a model with `over: reference` cannot have a fallback node",
    ),
    (
        plan(tool(), llm("b", "$a", context={"over": "reference"}, max_turns=1)),
        "limit",
        "nodes[1].max_turns",
        "needs a turn to answer; write 2 or more",
    ),
    (plan(llm("b", turn="first")), "turn", "nodes[0].turn", "this one calls none"),
    (
        plan(tool(), each(do={"kind": "llm", "prompt": "x", "turn": {"quorum": 2}})),
        "turn",
        "nodes[1].do.turn",
        "this one calls none",
    ),
    (
        plan(tool(), llm("b", tools=["search"], turn="first", workspace="$a.items[0].folder")),
        "turn",
        "nodes[1].turn",
        "each call works on what the one before it has left",
    ),
    (plan(gate(schema={"minProperties": 1})), "schema", "nodes[0].schema.minProperties", "is not supported"),
    (
        plan(gate(schema={"anyOf": [{"type": "array", "items": {"not": {}}}]})),
        "schema",
        "nodes[0].schema.anyOf[0].items.not",
        "schema keyword `not` is not supported",
    ),
    (plan(llm("b", output_schema={"type": []})), "schema", "nodes[0].output_schema.type", "has 0 items; at least 1"),
    (
        plan(tool(), each(do={"kind": "llm", "prompt": "x", "output_schema": {"properties": []}})),
        "schema",
        "nodes[1].do.output_schema.properties",
        "wanted object, not an empty list",
    ),
    (
        when({"and": [compare(f"$c.x{number}") for number in range(17)]})
        | {"nodes": [free("c"), llm("b", when={"and": [compare(f"$c.x{number}") for number in range(17)]})]},
        "facts",
        "nodes[0]",
        "conditions test 17 values of `c`; at most 16",
    ),
    (
        plan(free("c", on_error={"fallback": "x" * 300}), llm("b", when=compare("$c", "eq", "x"))),
        "facts",
        "nodes[0].on_error.fallback",
        "a condition tests it, but `.` is 300 bytes",
    ),
    (
        plan(tool(), tool("b", on_error={"fallback": "$a"})),
        "fallback",
        "nodes[1].on_error.fallback",
        "would stay text; write the value",
    ),
    (
        plan(tool(), each(do={"kind": "llm", "prompt": "x", "on_error": {"fallback": "$a.count"}})),
        "fallback",
        "nodes[1].do.on_error.fallback",
        "`$a.count` would stay text",
    ),
    (
        plan(tool(on_error={"instead": "s"}), tool("b", on_error={"instead": "s"}), tool("s"), llm("c", "$a $b")),
        "instead",
        "nodes[1].on_error.instead",
        "`s` is already the fallback node of `a`; give each node its own",
    ),
    (
        plan(tool(on_error={"instead": "s"}), tool("s"), llm("c", "$a $s")),
        "instead",
        "nodes[0].on_error.instead",
        "`s` runs only when `a` fails, so `c` must name `a` instead of it",
    ),
    (
        plan(tool(on_error={"instead": "s"}, when={"ref": "$s:status", "op": "exists"}), tool("s"), answer="$a"),
        "instead",
        "nodes[0].on_error.instead",
        "a needs s, which runs only when a has failed; take one",
    ),
    (
        plan(
            tool("s"),
            tool("w", when={"ref": "$s:status", "op": "eq", "value": "failed"}),
            join("j", ["w"], policy="settled"),
            tool("a", on_error={"instead": "s"}, needs=["j"]),
        ),
        "instead",
        "nodes[3].on_error.instead",
        "a needs j needs w needs s, which runs only when a has failed",
    ),
    (
        plan(
            tool("a", on_error={"instead": "s"}, needs=["w"]),
            tool("s", on_error={"instead": "t"}),
            tool("t"),
            tool("w", when={"ref": "$t:status", "op": "exists"}),
        ),
        "instead",
        "nodes[1].on_error.instead",
        "s needs a needs w needs t, which runs only when s has failed",
    ),
    (plan(tool(locks=[{"name": "r"}, {"name": "r", "mode": "shared"}])), "locks", "nodes[0].locks[1]", "named twice"),
    (plan(llm("b", model="openai:gpt")), "model", "nodes[0].model", "no provider serves `openai:gpt`; there are off"),
    (plan(tool(), each(do={"kind": "llm", "prompt": "x", "model": "y"})), "model", "nodes[1].do.model", "serves `y`"),
]


@pytest.mark.parametrize(("data", "code", "place", "expected"), PROBLEMS)
def test_a_broken_rule_is_one_sentence_at_its_place(data: Any, code: str, place: str, expected: str) -> None:
    found = problems(data)
    assert [(item.code, place_of(item.where)) for item in found if expected in item.message] == [(code, place)], found
    check_sentences(found, data)


def check_sentences(found: list[Problem], data: Any) -> None:
    """Every problem is reported once, in one printable line of bounded length, at a place within the data."""
    assert len(found) == len(set(found)) <= MAX_PLAN_PROBLEMS
    for problem in found:
        sentence = str(problem)
        assert sentence.isprintable(), ascii(sentence)
        assert 10 < len(problem.message) <= MAX_SENTENCE_CHARACTERS, sentence
        part_at(data, problem.where)


@pytest.mark.parametrize("name", PLANS)
def test_the_samples_of_every_kind_pass(name: str) -> None:
    assert problems(PLANS[name]) == []
    assert problems(PLANS[name], catalogue=None, models=None) == []


def test_unrelated_problems_are_reported_together() -> None:
    data = plan(
        tool(args={"quary": "x"}),
        llm("b", "$z ${x y}", when=compare("$a.cuont")),
        free("c", of="d"),
        free("d", of="c"),
        join("j", ["a", "a"]),
        answer="$nobody",
    )
    codes = {item.code for item in problems(data)}
    assert codes == {"argument", "dangling", "reference", "path", "cycle", "arity"}


LONG = "x" * 90_000


@pytest.mark.parametrize(
    "data",
    [
        plan(tool(), llm("b", f"$a.{LONG}")),
        plan(tool(), llm("b", when=compare(f"$a.count.{LONG}"))),
        plan(tool(), llm("b", when=compare("$a.count", "eq", f"$a.{LONG}"))),
        plan(tool(), each(over=f"$a.{LONG}")),
        plan(tool(), each(over=LONG)),
        plan(tool(args={"query": "x", LONG: 1})),
        plan(tool(args={"query": LONG})),
        plan(gate(schema={LONG: 1})),
        plan(gate(schema={"pattern": LONG})),
        plan(tool(), tool("b", on_error={"fallback": f"$a.{LONG}"})),
        plan(
            llm("b", "x", output_schema={"type": "object", "properties": {f"{LONG}{n}": {} for n in range(9)}}),
            llm("c", "$b.y"),
        ),
    ],
)
def test_long_texts_are_cut_so_that_the_way_out_still_fits(data: dict[str, Any]) -> None:
    found = problems(data)
    check_sentences(found, data)
    assert found
    assert all(len(str(item)) <= MAX_SENTENCE_CHARACTERS for item in found)


def test_a_dangling_name_is_not_also_reported_as_an_unclear_answer() -> None:
    assert {item.code for item in problems({"nodes": [tool("a"), tool("b", needs=["x"]), llm("c", "$b")]})} == {
        "dangling"
    }


def test_a_cycle_is_not_also_reported_as_a_missing_answer() -> None:
    (problem,) = problems({"nodes": [free("a", of="b"), free("b", of="a")]})
    assert problem.code == "cycle"


def test_a_cycle_is_found_in_a_chain_of_four_thousand() -> None:
    nodes = [free(f"n{number}", of=f"n{number - 1}" if number else "n3999") for number in range(4_000)]
    (problem,) = problems(plan(*nodes))
    assert problem.message.startswith("a cycle: n0 needs n3999 needs")


def test_too_many_edges_are_refused_with_the_hint_join() -> None:
    nodes = [free(f"a{number}") for number in range(400)]
    names = [f"a{number}" for number in range(400)]
    data = plan(*nodes, *(free(f"b{number}", needs=names) for number in range(400)), answer="$b0")
    (problem,) = problems(data)
    assert f"160,000 edges; at most {MAX_EDGES:,}. Put a join between" in problem.message


def test_at_most_a_hundred_problems_are_reported_even_for_ten_thousand_typos() -> None:
    nodes = [tool(f"node_number_{number}", needs=[f"nodenumber{number}"]) for number in range(10_000)]
    found = problems(plan(*nodes))
    assert len(found) == MAX_PLAN_PROBLEMS


def test_problems_come_node_by_node() -> None:
    data = plan(tool(tool="zzz"), llm("b", "$z"), tool("c", tool="yyy"))
    assert [place_of(item.where) for item in problems(data)] == ["nodes[0].tool", "nodes[1].prompt", "nodes[2].tool"]


def test_without_a_catalogue_tools_are_not_judged_and_the_rest_is() -> None:
    data = plan(tool(tool="zzz", args={"q": "$nobody"}), each("m", "$a.count"))
    assert {item.code for item in problems(data, catalogue=None)} == {"dangling"}


def test_without_models_their_names_are_not_judged() -> None:
    assert problems(plan(llm("b", model="openai:gpt")), models=None) == []
    assert problems(plan(llm("b", model="openai:gpt")), models=("openai", "offline")) == []


def test_a_dollar_before_anything_but_a_name_is_text() -> None:
    assert problems(plan(llm("b", "It costs $5, $$a, $ 7, 5$ and $(x) and $_x"))) == []
    assert problems(plan(llm("b", "$$a is not $${a b}"))) == []


def test_a_fallback_may_look_like_anything_but_a_reference_to_something_known() -> None:
    for value in ("$5", "$nobody", "costs $a", "$$a", None, {"x": 1}):
        assert problems(plan(tool(), tool("b", on_error={"fallback": value}))) == []


def test_an_optional_input_may_be_null_and_still_passes_as_its_type() -> None:
    data = plan(tool(args={"query": "x", "k": "$input.n"}), inputs=CITY)
    assert problems(data) == []
    assert problems(plan(tool(args={"query": "$input.n"}), inputs=CITY))[0].code == "argument"


@pytest.mark.parametrize("seed", range(10))
def test_damaged_plans_are_refused_or_run_to_their_end(seed: int) -> None:
    """Ten thousand in all: nothing raises, every problem leads to its place, and what passes every check runs."""
    chance = random.Random(seed)
    ran = 0
    for round_ in range(1_000):
        data = sample(list(PLANS)[round_ % len(PLANS)])
        for _ in range(chance.randint(1, 3)):
            damage(data, chance)
        try:
            read = parse_plan(data)
        except InvalidPlan:
            continue
        check_sentences(problems_of(read), data)
        found = problems_of(read, CATALOGUE, models=OFFLINE)
        check_sentences(found, data)
        ran += not found and runs(read)
    assert ran > 20


def runs(read: Plan) -> bool:
    """Run a checked plan without facts and with plausible ones; False when its inputs do not fit."""
    if list(input_problems(read, {})):
        return False
    execution_plan = skeleton_of(read, bind_inputs(read, {}))
    packed = execution_plan.pack()
    assert ExecutionPlan.unpack(packed).pack() == packed
    Drive(execution_plan).run()
    Drive(ExecutionPlan.unpack(packed), wanted_facts(read)).run()
    return True


@settings(max_examples=60, deadline=None)
@given(anything)
def test_no_catalogue_makes_the_check_raise(part: Any) -> None:
    """Tools come from anywhere: a schema that makes no sense says nothing."""
    catalogue = [
        {"name": "search", "schema": part, "output_schema": part, "effect": part},
        {"name": "calculate", "schema": {"type": part, "properties": part, "anyOf": part, "$ref": part, "$defs": part}},
    ]
    for name in PLANS:
        check_sentences(problems_of(parse_plan(PLANS[name]), catalogue), PLANS[name])


def test_the_design_example_says_what_it_takes_when_a_tool_is_renamed() -> None:
    data = NILE | {
        "nodes": [node | ({"tool": "look_up"} if node.get("tool") == "search" else {}) for node in NILE["nodes"]]
    }
    known = "anything, calculate, load, note, read, save, search, shell, store"
    assert [str(item) for item in problems(data)] == [
        f"nodes[0].tool: there is no tool `look_up`; known: {known}",
        f"nodes[1].tool: there is no tool `look_up`; known: {known}",
    ]


def test_a_write_where_no_worker_may_write_names_the_setting() -> None:
    sentence = "nodes[0].tool: there is no tool `write`: workers offer it where SENNIT_WRITE_ROOT is set"
    assert [str(item) for item in problems({"nodes": [tool() | {"tool": "write"}]})] == [sentence]


def test_a_chain_of_ten_thousand_nodes_is_checked_compiled_and_packed() -> None:
    nodes = [
        tool(args={"query": f"find $n{number - 1}" if number else "x", "k": 3}) | {"id": f"n{number}"}
        for number in range(10_000)
    ]
    read = parse_plan(plan(*nodes))
    assert problems_of(read, CATALOGUE, models=OFFLINE) == []
    packed = skeleton_of(read).pack()
    assert len(packed) < 1_500_000


LOAD = {"kind": "tool", "tool": "load", "args": {"path": "$item.path"}}
CHAINS: list[tuple[Any, str, str]] = [
    ([LOAD, LOAD], "nodes[1].do[0]", "`id` is missing: those below refer to this node by it"),
    ([{"id": "x", **LOAD}, {"id": "y", **LOAD}], "nodes[1].do[1].id", "the last node of `do` has no `id`"),
    (LOAD | {"id": "x"}, "nodes[1].do.id", "`do` is a node without `id`: the map names its copies"),
    ([{"id": "a", **LOAD}, LOAD], "nodes[1].do[0].id", "`a` is a node; choose another id"),
    ([{"id": "item", **LOAD}, LOAD], "nodes[1].do[0].id", "`item` is taken; choose another id"),
    ([{"id": "ledger", **LOAD}, LOAD], "nodes[1].do[0].id", "`ledger` is taken; choose another id"),
    ([{"id": "x", **LOAD}, {"id": "x", **LOAD}, LOAD], "nodes[1].do[1].id", "`x` is taken; choose another id"),
    (
        [{"id": "x", **LOAD, "args": {"path": "$x"}}, LOAD],
        "nodes[1].do[0].args.path",
        "`$x` has no value here; a node in `do` reads only those above it",
    ),
    (
        [{"id": "page", **LOAD}, {**LOAD, "args": {"path": "$pgae"}}],
        "nodes[1].do[1].args.path",
        "`$pgae` refers to no node; did you mean `page`?",
    ),
    (
        [{"id": "x", **LOAD}, LOAD | {"when": compare("$x:status", "eq", "failed")}],
        "nodes[1].do[1].when.ref",
        "for each item only values can be tested",
    ),
    (LOAD | {"when": compare("$item.path", "gt", None)}, "nodes[1].do.when", "`gt` compares numbers or texts"),
    ([{"id": "x", **LOAD, "tool": "laod"}, LOAD], "nodes[1].do[0].tool", "there is no tool `laod`"),
    (
        [{"id": "x", **LOAD, "on_error": {"instead": "a"}}, LOAD],
        "nodes[1].do[0].on_error.instead",
        "`a` is no other node of this `do`",
    ),
]


@pytest.mark.parametrize(("do", "place", "message"), CHAINS)
def test_each_problem_of_a_chain_has_its_place(do: Any, place: str, message: str) -> None:
    found = problems(plan(tool(), each(do=do)))
    assert [(place_of(item.where), message in item.message) for item in found] == [(place, True)], found


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        ({"items": "b"}, "nodes[2].items", "there is no node `b`"),
        ({"items": "a"}, "nodes[2].items", "`a` is no map, so it has no items; write `inputs: [a]`"),
        ({"items": "m", "inputs": ["a"]}, "nodes[2].inputs", "a join has `inputs` or `items`"),
        ({"items": "m", "policy": "all"}, "nodes[2].items", "the map itself waits for all its items; refer to $m"),
    ],
)
def test_what_is_wrong_with_a_join_of_items(fields: dict[str, Any], place: str, message: str) -> None:
    found = problems(plan(tool(), each(), {"id": "j", "kind": "join", "policy": "first", **fields}))
    assert [(place_of(item.where), message in item.message) for item in found] == [(place, True)], found


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({}, 1),
        ({"needs": ["m"]}, -1),
        ({"over": "$m[0].items"}, -1),
        ({"do": LOAD | {"args": {"path": "${m[0].path}"}}}, -1),
        ({"when": compare("$m.length", "gt", 2)}, -1),
        ({"when": compare("$m:status", "eq", "succeeded")}, -1),
        ({"when": compare("$a.count", "gt", 2)}, 1),
    ],
)
def test_a_map_over_the_items_of_a_map_runs_behind_them_unless_it_needs_more_of_it(
    fields: dict[str, Any], source: int
) -> None:
    behind = each("b", "$m") | fields
    read = parse_plan(plan(tool(), each(), behind))
    assert skeleton_of(read).specs[2].source == source
    behind_a_fallback = parse_plan(plan(tool(), each(on_error={"fallback": []}), behind))
    assert skeleton_of(behind_a_fallback).specs[2].source == -1
