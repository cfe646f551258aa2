"""Whole programs, advance by advance: the answer is the same in any order of ends, and after any restart."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE
from doubles.programs import PREFIX, TOPIC, End, Play

from sennit.activities.nodes import short_calls
from sennit.activities.nodes.content_key import content_key
from sennit.activities.nodes.error_mapping import CallFailed, OtherPython, ProgramFailed
from sennit.activities.programs import advance
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.progress import Snapshot, Start
from sennit.activities.programs.session import OpenCall, Session, Snapshots, note_failures, recall_failures
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox.errors import ToolError
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.plan.compile.execution_plan import KEY_CHARACTERS
from sennit.workflows.plan.language.nodes import GateNode, LlmNode, ToolNode

Make = Callable[..., Play]
SEEDS = pytest.mark.parametrize("seed", range(4))

MANY = """
import asyncio, random

async def deep(text: str, level: int):
    if level == 0:
        return await search(query=text)
    return await parallel([task(deep, text=f"{text}{n}", level=level - 1) for n in range(2)])

async def shout(text):
    return (await search(query=text)) + "!"

async def twice(text):
    return text + text

async def broken(text):
    raise ValueError(f"no {text}")

async def main():
    phase("the first: a/b")
    both = await asyncio.gather(search(query="a"), search("b"), search(query="a"))
    try:
        await search(query="fails")
    except RuntimeError as error:
        both.append(str(error))
    phase("second")
    ends = await settled([task(twice, text="t"), task(broken, text="u"), task(search, query="v")])
    lines = await pipeline(["x", "y"], shout, twice, search)
    some = await quorum(1, [task(twice, text="only")])
    one = await first([task(twice, text="won")])
    nothing = await parallel([])
    left = await budget_left()
    tree = await parallel([task(deep, text="d", level=2)])
    return [both, ends, lines, some, one, nothing, left["tokens"], tree, random.random()]
"""

PLACES = ("gather(", "settled(", "pipeline(", '+ "!"')


class Broken(Exception):
    """What a tool fails with."""


def research(prompt: str, *material: Any, schema: Any) -> Any:
    if prompt.startswith("Five"):
        return [f"{material[0]} ${number}" for number in range(5)]
    if prompt.startswith("What"):
        return {"good": "(2)" in material[0], "faults": ["short"]}
    rounds = str(material[0]).count("Mend")
    return f"{prompt[:5]}({rounds}) {material[0]}"


def search(query: str, k: int = 0) -> str:
    if query == "fails":
        raise Broken("disk")
    return f"<{query}>"


FAKES = {"llm": research, "search": search, "ask": lambda question: question[-40:]}


@SEEDS
@pytest.mark.parametrize(("script", "arguments"), [(TOPIC, {"topic": "tidal power"}), (MANY, {})])
async def test_a_program_ends_the_same_in_any_order_and_calls_nothing_twice(
    play: Make, script: str, arguments: dict[str, Any], seed: int
) -> None:
    plain = await play(script, fakes=FAKES).run(**arguments)
    other = play(script, fakes=FAKES, seed=seed + 1)
    assert await other.run(**arguments) == plain
    assert set(other.called.values()) == {1}
    assert set(other.keys.values()) == {1}, "every call has a key of its own"


@SEEDS
async def test_a_program_goes_on_from_its_start_when_no_snapshot_can_be_loaded(
    play: Make, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = await play(MANY, fakes=FAKES).run()
    other = play(MANY, fakes=FAKES, seed=seed)
    find, loaded = Snapshots.find, list[Snapshot | None]()

    def lost(kept: Snapshots, run_prefix: str, digest: str) -> Snapshot | None:
        other.renew()
        loaded.append(find(kept, run_prefix, digest))
        return loaded[-1] if len(loaded) % 2 else None

    monkeypatch.setattr(Snapshots, "find", lost)
    assert await other.run() == plain
    assert set(other.called.values()) == {1}


HANDS_ON = """
async def main(options: dict):
    page = await search(query="a")
    note = await llm("Note.", page, options)
    return await llm("End.", note, list(page), list(options))
"""


async def test_keys_keep_their_order_without_a_snapshot(play: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes: dict[str, Any] = {
        "search": lambda query: {"query": query, "count": 1, "items": [{"path": "b.md", "at": 2}]},
        "llm": lambda prompt, *material, **options: [prompt, *material],
    }
    options = {"size": 2, "order": "up"}
    plain = await play(HANDS_ON, fakes=fakes).run(options=options)
    assert plain[2:] == [["query", "count", "items"], ["size", "order"]]

    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    assert await play(HANDS_ON, fakes=fakes).run(options=options) == plain


@pytest.mark.parametrize("body", ["return 1", "return await search(query='b')", "return await llm('a')"])
async def test_a_script_that_makes_other_calls_over_its_record_is_not_believed(
    play: Make, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    start_of, started = Interpreter.start_of, list[Start]()

    def another(interpreter: Interpreter, script: str, *given: Any) -> Start:
        started.append(start_of(interpreter, script, *given))
        if len(started) == 1:
            return started[0]
        return started[0]._replace(text=f"async def main():\n    {body}\n")

    monkeypatch.setattr(Interpreter, "start_of", another)
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    with pytest.raises(ProgramFailed, match="the script makes other calls"):
        await play("async def main():\n    return await search(query='a')", fakes=FAKES).run()


async def test_a_program_of_another_python_says_so(play: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    start_of = Interpreter.start_of

    def another(interpreter: Interpreter, script: str, *given: Any) -> Start:
        monkeypatch.setattr(advance, "PYTHON", "3.99")
        monkeypatch.setattr(Interpreter, "start_of", changed)
        return start_of(interpreter, script, *given)

    def changed(interpreter: Interpreter, script: str, *given: Any) -> Start:
        return start_of(interpreter, script.replace("'a'", "'b'"), *given)

    monkeypatch.setattr(Interpreter, "start_of", another)
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    with pytest.raises(OtherPython, match=r"began in Python 3.* calls in Python 3\.99, which this worker has"):
        await play("async def main():\n    return await search(query='a')", fakes=FAKES).run()


async def test_what_a_script_logs_is_told_once_by_each_step_also_from_its_start_again(
    play: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    logging = """
async def look(name):
    print("look", name, end="")
    print(":", await search(query=name))
    raise ValueError("odd")

async def main():
    log("begin", {"a": 1}, sep="-")
    for query in ("a", "b"):
        print(await search(query=query), "two\\nlines")
    ends = await settled([task(look, name="n")])
    log(ends[0]["status"])
"""
    one = play(logging, fakes=FAKES)
    await one.run()
    looked = ["look#1: look n", "look#1: : <n>"]
    assert one.logged == ["begin-{'a': 1}", "<a> two", "lines", "<b> two", "lines", *looked, "failed"]


def test_a_program_logs_64_kib_and_says_what_is_cut() -> None:
    session = Session(script="s", function="main", key="k")
    assert session.log("") == ()
    assert session.log("x" * 2_001 + "\n\n") == (f"{'x' * 2_000}… (1 more characters)", "")
    *_, last = session.log("y\n" * 40_000)
    assert last == "(the log ends here: a program logs at most 64 KiB)"
    assert (session.log("more"), session.logged > 1 << 16) == ((), True)


async def test_keys_do_not_depend_on_lines_and_ids(play: Make) -> None:
    one, other = play(MANY, fakes=FAKES), play("# moved\n\n" + MANY, fakes=FAKES, seed=7)
    await one.run()
    await other.run()
    assert one.keys == other.keys


WAYS = (
    """
async def main():
    return [await search(query=name) for name in ("a", "b", "a")]
""",
    """
async def look(name):
    return await search(query=name)

async def main():
    return await asyncio.gather(look("b"), look("a"), look("a"))
""",
    """
async def look(name):
    return await search(query=name)

async def main():
    found = await parallel([task(look, name=name) for name in ("a", "b")])
    return [*found, await search("a")]
""",
)


async def test_a_call_has_the_same_key_wherever_the_script_makes_it(play: Make) -> None:
    """So renaming, reordering, inlining or another loop repeats nothing after an edit."""
    runs = [play(f"import asyncio\n{way}", fakes=FAKES) for way in WAYS]
    for run in runs:
        await run.run()
    assert runs[0].keys == runs[1].keys == runs[2].keys
    assert len(runs[0].keys) == 3


@pytest.mark.parametrize(
    ("call", "reads"),
    [
        ('search("a")', True),
        ('llm("Well?")', False),
        ('llm("Well?", tools=["search"])', True),
        ('llm("Well?", tools=["search", "note"])', False),
        ('agent("Go", tools=["search"])', True),
        ('agent("Go")', False),
    ],
)
async def test_a_read_in_front_of_a_write_is_never_taken_for_the_one_behind_it(
    play: Make, call: str, reads: bool
) -> None:
    """A model call without tools reads nothing, and is known whatever was written. So is one that writes by its tools,
    and an agent: made again, they would write again.
    """
    fakes: dict[str, Callable[..., Any]] = {
        "search": search,
        "note": lambda text: text,
        "llm": lambda prompt, schema: prompt,
        "agent": lambda goal: goal,
    }
    front, behind = (
        play(f"async def main():\n    {lines}\n", fakes=fakes)
        for lines in (f"await {call}\n    await note('x')", f"await note('x')\n    await {call}")
    )
    await front.run()
    await behind.run()
    known = set(front.keys) & set(behind.keys)
    assert len(known) == (1 if reads else 2), "the write is the same, and so is what reads nothing"


@pytest.mark.parametrize(
    ("call", "writes"),
    [
        ('note("x")', True),
        ('llm("Well?", tools=["search"])', False),
        ('llm("Well?", tools=["search", "note"])', True),
        ('agent("Go", tools=["search"])', False),
        ('agent("Go")', True),
    ],
)
async def test_a_read_behind_what_may_write_is_not_the_one_in_front_of_that(
    play: Make, call: str, writes: bool
) -> None:
    """An edit that drops the first of two equal reads takes over the second one, not what was there before."""
    fakes: dict[str, Callable[..., Any]] = {"search": search, "note": lambda text: text}
    fakes["llm"] = lambda prompt, schema: prompt
    fakes["agent"] = lambda goal: goal
    front, behind = (
        play(f"async def main():\n    {lines}\n", fakes=fakes)
        for lines in (f"await search('a')\n    await {call}", f"await {call}\n    await search('a')")
    )
    await front.run()
    await behind.run()
    known = set(front.keys) & set(behind.keys)
    assert len(known) == (1 if writes else 2)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ('await search(query="fails")', CallFailed, "Broken: disk (line 3: await search(query=\"fails\"))"),
        ('t = search("fails")\n    await search("b")\n    await t', CallFailed, "Broken: disk (line 5: await t)"),
        ("late = note('a')\n    if not late: await late", ProgramFailed, "never awaited note:3"),
        ("return 1 / 0", ProgramFailed, "ZeroDivisionError: division by zero (line 3: return 1 / 0)"),
        ('await serch("a")', ProgramFailed, "NameError: serch: name 'serch' is not defined; did you mean `search`?"),
        ("await parallel(['ticket:1'])", ProgramFailed, "ValueError: parallel: takes tickets"),
        ("await parallel([task(boom)])", ProgramFailed, "ValueError: boom (line 1: async def boom()"),
        ("await parallel([task(boom) for n in range(10001)])", ProgramFailed, "over 10,000 calls, the last on line 3"),
        ("[search(str(n)) for n in range(10**7)]", ProgramFailed, "more than 64 MB; have tasks return"),
        ("return await search(query='a' * 401)", ProgramFailed, "query: has 401 characters; at most 400"),
    ],
)  # fmt: skip
async def test_a_program_that_fails_says_why_and_where(
    play: Make, body: str, kind: type[Exception], message: str
) -> None:
    script = f"async def boom(): raise ValueError('boom')\nasync def main():\n    {body}\n"
    with pytest.raises(kind) as found:
        await play(script, fakes=FAKES).run()
    assert message in str(found.value)


@pytest.mark.parametrize("name", ["bad.py", "my own (1).py"])
async def test_a_failure_names_the_file_of_the_program(play: Make, name: str) -> None:
    """Also that of a task, and those of coroutines."""
    script = f"""
import asyncio
async def boom(): raise ValueError("boom")
async def main(how: str):
    if how == "task": await parallel([task(boom)])
    await asyncio.Semaphore(0).acquire()
# ==== main: {name} ====
"""
    with pytest.raises(ProgramFailed) as found:
        await play(script, fakes=FAKES).run(how="task")
    assert str(found.value) == f'ValueError: boom ({name}:3: async def boom(): raise ValueError("boom"))'
    with pytest.raises(ProgramFailed, match="the coroutines wait for each other, on ") as stuck:
        await play(script, fakes=FAKES).run(how="")
    assert f"on {name}:6, and for no call ({name}:6: await" in str(stuck.value)


async def test_a_failed_call_is_fed_again_after_its_retry_to_the_advance_that_read_it(play: Make) -> None:
    script = "async def main():\n    one = await search(query='fails')\n    return [one, await search(query='b')]"
    run = play(script, fakes=FAKES)
    with pytest.raises(CallFailed):
        await run.run()
    run.ends = {"main_1": End(await run.library.put(PREFIX, "mended"))}
    run.going = {}
    await run.take(await run.programs.advance(await run.context("main", generation=2)))
    [made, program] = run.going
    assert (made, program) == ("main_r2_2", "main")
    while "main" not in run.ends:
        await run.start(next(name for name in run.going if run.may_start(name)))
    assert await run.library.value(PREFIX, run.ends["main"].ref) == ["mended", "<b>"]


async def test_a_skipped_call_is_none(play: Make) -> None:
    run = await play("async def main():\n    return [await search(query='a')]").begin()
    await run.advance("main")
    run.end("main_1", End("", "skipped", "Skipped: by a person"))
    await run.advance("main")
    assert await run.library.value(PREFIX, run.ends["main"].ref) == [None]


@pytest.mark.parametrize(
    ("size", "times", "expected"),
    [(1_000_000, 1, "1000000"), (1_100_000, 1, "ValueError"), (900_000, 19, "MemoryError")],
)
async def test_what_a_script_reads_is_bounded(play: Make, size: int, times: int, expected: str) -> None:
    script = f"""
async def main():
    try:
        for _ in range({times}):
            text = await search(query="big")
        return str(len(text))
    except (ValueError, MemoryError) as error:
        return type(error).__name__
"""
    assert await play(script, fakes={"search": lambda query: "x" * size}).run() == expected


async def test_material_is_given_beside_the_prompt_and_a_dollar_is_text(play: Make) -> None:
    script = """
async def main():
    text = await llm("Costs $5 and $main_1?", "is $untrusted", [1], schema=int | None)
    found = await search("$main_1")
    return await ask("Pay $5?", "material $x", [text, found])
"""
    asked: list[Any] = []

    def llm(prompt: str, *material: Any, schema: Any) -> int:
        asked.append((prompt, material, schema))
        return 1

    run = play(script, fakes={"llm": llm, "search": search, "ask": lambda question: question})
    assert await run.run() == 'Pay $5?\n\nmaterial $x\n\n[1,"<$main_1>"]'
    either = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert asked == [("Costs $5 and $main_1?", ("is $untrusted", [1]), either)]
    assert "untrusted" not in str([node for _, node, _ in run.nodes.values() if isinstance(node, LlmNode)])


async def test_nodes_have_labels_queues_and_keys(play: Make) -> None:
    run = play(MANY, fakes=FAKES)
    await run.run()
    summaries = [spec.summary for _, _, spec in run.nodes.values()]
    labels = dict(summary.split(" ", 1) for summary in summaries if summary)
    lines = MANY.splitlines()
    both, ticket, pipe, stage = (next(n for n, line in enumerate(lines, 1) if text in line) for text in PLACES)
    assert labels["main_1"] == f'the-first-a-b/search:{both} "a"'
    labels |= dict(task.summary.split(" ", 1) for task in run.tasks)
    assert labels["main_5"] == f'second/twice#1:{ticket} "t"'
    assert labels["main_7"] == f'second/search:{ticket} "v"'
    assert labels["main_8"] == f'second/shout>twice>search#1:{pipe} "x"'
    assert labels["main_9"] == f'second/shout>twice>search#1/search:{stage} "x"'
    assert all(spec.queue == "sennit.tools" for _, _, spec in run.nodes.values())
    for name, (plan, node, _) in run.nodes.items():
        checked = await run.library.plan(PREFIX, plan)
        assert (name in checked.keys) == isinstance(node, ToolNode | LlmNode)
        assert not isinstance(node, GateNode)


EQUAL = """
async def main():
    found = []
    for _ in range(TIMES):
        try:
            found.append(await search(query="a"))
        except RuntimeError:
            pass
    return found
"""


@pytest.mark.parametrize(("way", "in_place"), [("edited", False), ("forked", False), ("forked", True)])
async def test_an_equal_call_that_had_failed_is_skipped_by_the_next_script(
    play: Make, way: str, in_place: bool
) -> None:
    """So equal calls that coroutines make in another order do no harm: what has succeeded is taken over in order."""
    answers = iter(["", "one", "two"])

    def search(query: str) -> str:
        answer = next(answers)
        if not answer:
            raise ToolError("no", retryable=False)
        return answer

    first = play(EQUAL.replace("TIMES", "3"), fakes={"search": search}, in_place=in_place)
    assert await first.run() == ["one", "two"]
    second: Play = getattr(first, way)(EQUAL.replace("TIMES", "2"))
    assert await second.run() == ["one", "two"]
    third: Play = getattr(second, way)(EQUAL.replace("TIMES", "1"))
    assert await third.run() == ["one"]
    assert second.called == third.called == {}


async def test_a_fork_of_an_edited_program_skips_what_had_failed_under_any_of_its_scripts(play: Make) -> None:
    script = EQUAL.replace('"a"', "word").replace("for _ in range(TIMES)", "for word in WORDS")
    answers = {"a": iter(["", "one"]), "b": iter(["", "two"])}

    def search(query: str) -> str:
        answer = next(answers[query])
        if not answer:
            raise ToolError("no", retryable=False)
        return answer

    first = play(script.replace("WORDS", "'a'"), fakes={"search": search})
    assert await first.run() == []
    second = first.edited(script.replace("WORDS", "'abb'"))
    assert await second.run() == ["one", "two"]
    fork = second.forked(script.replace("WORDS", "'ab'"))
    assert await fork.run() == ["one", "two"]
    assert fork.called == {}


async def test_a_fork_takes_over_what_failed_first_and_succeeded_when_it_was_run_again(play: Make) -> None:
    library = (await play(EQUAL).begin()).library
    call = OpenCall("main_1", "a" * 64)
    session = Session(script="s", function="main", key="main")
    await note_failures(library, PREFIX, session, [call], [])
    assert await library.noted(PREFIX, "failed main") == [call.key[:KEY_CHARACTERS]]
    again = Session(script="s", function="main", key="main")
    await recall_failures(library, PREFIX, again)
    await note_failures(library, PREFIX, again, [], [call])
    assert await library.noted(PREFIX, "failed main") == []


async def test_a_call_that_is_made_again_has_its_first_result(play: Make) -> None:
    """By a program in another generation: ids are new, the keys of the results are not."""
    script = "async def main():\n    return await search(query='a')"
    run = await play(script).begin()
    found = []
    for generation in (1, 2):
        context = await run.context("main", generation)
        await run.take(await run.programs.advance(context))
        run.session = ""
        name = next(name for name in run.going if run.nodes[name][1].kind == "tool" and name not in found)
        found.append(name)
    contexts = [await run.context(name) for name in found]
    keys = [content_key(each.checked, each.unit, {}, each.call, "1") for each in contexts]
    assert found[0] != found[1]
    assert keys[0] == keys[1]


async def test_what_an_advance_stores_does_not_grow_with_what_came_before(
    play: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "async def main():\n    for n in range(400):\n        last = await search(query=str(n))\n    return last"
    run = play(script, fakes=FAKES)
    sizes: list[int] = []
    put = run.store.put

    async def stored(run_prefix: str, body: bytes) -> str:
        sizes.append(len(body))
        return await put(run_prefix, body)

    monkeypatch.setattr(run.store, "put", stored)
    await run.run()
    early, late = sum(sizes[: len(sizes) // 4]), sum(sizes[-len(sizes) // 4 :])
    assert late < 1.5 * early


def test_a_session_is_small() -> None:
    assert len(Session(script="s", function="main", key="main").model_dump_json(exclude_defaults=True)) < 50


TEXT, ROWS = "$abc" * 300_000, [{"row": number} for number in range(20_000)]
REFS = """
async def keep(found: Ref, again: list):
    return {"found": found, "size": found.size, "again": again}

async def lines(path):
    return await part(path, 1, 3)

async def main():
    text = await page(path="text")
    rows = await page(path="rows")
    [kept] = await parallel([task(keep, found=text, again=[rows])])
    [ticket] = await settled([task(page, path="text")])
    said = await llm("Read.", text, [rows, rows], "small")
    asked = await ask("Which?", "small", text)
    copied = await search(query="q", deep={"of": rows})
    parts = [await part(text, 0, 4), await part(rows, -1), await pipeline(["rows"], page, lines)]
    same = text.size == kept["size"] == ticket["value"].size
    return [said, asked, copied, parts, same, kept["again"][0].size, kept["found"], await part(kept["again"][0], 0, 1)]
"""


def large(catalogue: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A catalogue with a tool whose results are large."""
    page = {
        "name": "page",
        "effect": "read",
        "schema": {"properties": {"path": {}}},
        "output_schema": {},
        "large": True,
    }
    search = next(entry for entry in catalogue if entry["name"] == "search")
    return [page, {**search, "schema": {"properties": {"query": {"type": "string"}, "deep": {"type": "object"}}}}]


async def test_a_part_that_is_never_awaited_is_dropped(play: Make) -> None:
    script = "async def main():\n    late = part(await page(path='text'))\n    return 1 if late else await late"
    assert await play(script, fakes={"page": lambda path: TEXT}, catalogue=large(CATALOGUE)).run() == 1


@SEEDS
async def test_a_large_result_is_given_on_without_passing_through_the_script(
    play: Make, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def take(*values: Any) -> str:
        given.extend(values)
        return "taken"

    fakes = {
        "page": lambda path: TEXT if path == "text" else ROWS,
        "llm": lambda prompt, *material, schema: take(*material),
        "ask": lambda question: question.replace(TEXT, "TEXT"),
        "search": lambda query, deep: take(deep["of"]),
        "read_part": lambda output, **places: output[places["from"] : places["to"]],
    }
    run = play(REFS, fakes=fakes, seed=seed, catalogue=large(CATALOGUE))
    find, loaded = Snapshots.find, list[Snapshot | None]()

    def lost(kept: Snapshots, run_prefix: str, digest: str) -> Snapshot | None:
        loaded.append(find(kept, run_prefix, digest))
        return None if seed and len(loaded) % 2 else loaded[-1]

    monkeypatch.setattr(Snapshots, "find", lost)
    found = await run.run()
    parts = ["$abc", ROWS[-1:], [ROWS[1:3]]]
    assert found == ["taken", "Which?\n\nsmall\n\nTEXT", "taken", parts, True, len(ROWS), TEXT, ROWS[:1]]
    assert sorted(given, key=str) == sorted([TEXT, ROWS, ROWS, "small", ROWS], key=str)
    assert max(len(str(kept.record)) for kept in loaded if kept is not None) < 30_000, "no record has a large value"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("await llm('Sum up', {'text': text})", "llm: a Ref is material by itself"),
        ("await part('text', 1)", "part: takes a Ref, which is the result of a large tool"),
        ("text.splitlines()", "a Ref has `.size` alone: read it with `await part(ref, a, b)`"),
        ("text.text", "a Ref has `.size` alone"),
        ("await search(query=text, deep=1)", "deep: wanted object, not 1"),
    ],
)
async def test_what_a_reference_is_not(play: Make, line: str, message: str) -> None:
    script = f"async def main():\n    text = await page(path='text')\n    {line}\n"
    with pytest.raises(ProgramFailed) as found:
        await play(script, fakes={"page": lambda path: TEXT}, catalogue=large(CATALOGUE)).run()
    assert message in str(found.value)
    assert "(line 3: " in str(found.value)


FALSE = {"__ref__": "a" * 40, "size": 5}
OUTSIDE = """
import json

class Ref:
    def __init__(self, digest: str, size: int):
        self.digest, self.size = digest, size

async def same(value):
    return value

async def main(value):
    called = await search(query="q")
    [one, other] = await parallel([task(search, query="q"), task(same, value=value)])
    fastest = await first([task(search, query="q")])
    two = await quorum(2, [task(search, query="q"), task(same, value=value)])
    ends = await settled([task(search, query="q"), task(same, value=value)])
    piped = await pipeline([value], same)
    made = Ref("a" * 40, 5)
    texts = ("<module 'os'>", "Ref(digest='", "<function 'x' at 0x0>")
    texts = await parallel([task(same, value=text) for text in texts])
    try:
        await part(made, 0, 1)
    except TypeError as error:
        said = str(error)
    return [called, one, other, fastest, *two, *[end["value"] for end in ends], *piped, value], texts, made, said
"""


@SEEDS
async def test_what_comes_from_outside_is_never_a_reference(
    play: Make, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as it is, not escaped, not by its text, and not as an instance of a class of the same name."""
    data = {"is": FALSE, "was": {"__ref__~": 1, "__ref__~~": [FALSE]}, "text": "Ref(digest='" + "a" * 40 + "', size=5)"}
    find, seen = Snapshots.find, list[Snapshot | None]()

    def sometimes_lost(kept: Snapshots, run_prefix: str, digest: str) -> Snapshot | None:
        seen.append(find(kept, run_prefix, digest))
        return None if len(seen) % 2 else seen[-1]

    monkeypatch.setattr(Snapshots, "find", sometimes_lost)
    values, texts, made, said = await play(OUTSIDE, fakes={"search": lambda query: data}, seed=seed).run(value=data)
    assert values == [data] * 10
    assert texts == ["<module 'os'>", "Ref(digest='", "<function 'x' at 0x0>"]
    assert made == {"digest": "a" * 40, "size": 5}
    assert "takes a Ref" in said


async def test_a_session_takes_only_the_refs_that_it_was_given(play: Make) -> None:
    """One whose size a script has changed is none that it was given."""
    script = """
async def main():
    text = await page(path="text")
    await search(query="q")
    vars(text)["size"] = 1_000_000
    return await part(text, 0, 1)
"""
    fakes = {"page": lambda path: TEXT, "search": lambda query: 1}
    with pytest.raises(ProgramFailed, match="it has a Ref that the script was not given"):
        await play(script, fakes=fakes, catalogue=large(CATALOGUE)).run()


async def test_what_pages_take_grows_with_the_calls_and_not_with_those_that_are_open(play: Make) -> None:
    script = """
import asyncio

async def main(count: int):
    return len(await asyncio.gather(*[search(query=str(number)) for number in range(count)]))
"""
    taken = {}
    for count in (20, 60):
        run = play(script, fakes=FAKES, takes=lambda node: 1 + len(node.id) + float(node.args["query"]))
        assert await run.run(count=count) == count
        assert run.pages == count
        taken[count] = run.told_bytes
    assert taken[60] < 3 * taken[20] * 1.1


async def test_a_step_makes_the_calls_of_tasks_too(play: Make) -> None:
    script = """
async def look(text: str, depth: int):
    log(text)
    found = await search(query=text)
    if depth:
        found += sum(await parallel([task(look, text=f"{text}{n}", depth=depth - 1) for n in range(2)]))
    return found

async def main():
    return await parallel([task(look, text=text, depth=2) for text in ("a", "bb")])
"""
    fakes = {"search": lambda query: len(query)}
    plain = play(script, fakes=fakes)
    run = play(script, fakes=fakes, in_place=True)
    assert await run.run() == await plain.run() == [17, 24]
    assert (run.pages, run.made.total(), run.called.total()) == (1, 14, 0)
    assert run.keys == plain.keys
    assert sorted(run.logged) == sorted(plain.logged)


async def test_a_step_hands_over_when_a_task_waits_for_something_long(play: Make) -> None:
    script = """
async def look(text: str):
    found = await search(query=text)
    return await llm(f"{found}") if text == "a" else found

async def main():
    return await parallel([task(look, text=text) for text in "abc"])
"""
    run = play(script, fakes={"search": lambda query: query * 2, "llm": lambda prompt, **_: prompt}, in_place=True)
    assert await run.run() == ["aa", "bb", "cc"]
    assert run.advances[0] == ""
    assert (run.made.total() + run.called.total(), set(run.keys.values())) == (4, {1})


PAIR = """
import asyncio

async def main():
    found = await asyncio.gather(search(query="quick"), search(query="slow"))
    return [*found, await search(query="last")]
"""


async def test_a_step_hands_over_a_call_that_takes_too_long(play: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_calls, "ADVANCE_SECONDS", 0.2)
    monkeypatch.setattr(short_calls, "GRACE_SECONDS", 0.1)
    run = play(PAIR, fakes={"search": lambda query: len(query)}, in_place=True)
    make, cut_off = run.make, []

    async def slowly(page: StoredPlan, name: str) -> NodeReply:
        if name == "main_2":
            try:
                await asyncio.Event().wait()
            finally:
                cut_off.append(name)
        return await make(page, name)

    monkeypatch.setattr(run, "make", slowly)
    assert await run.run() == [5, 4, 4]
    assert cut_off == ["main_2"]
    assert set(run.made) == {run.keys_of["main_1"], run.keys_of["main_3"]}
    assert run.called.total() == 1


async def test_a_step_makes_no_more_calls_than_the_budget_has_nodes_for(play: Make) -> None:
    script = "async def main():\n    return [await search(query='a' * n) for n in range(1, 6)]\n"
    run = play(script, fakes={"search": lambda query: len(query)}, in_place=True, left={"nodes": 2})
    assert await run.run() == [1, 2, 3, 4, 5]
    assert (run.made.total(), run.called.total()) == (4, 1)


@pytest.mark.parametrize("others", ["llm('?')", "sleep(1)", "note(text='a')"])
async def test_what_is_not_short_begins_at_once(play: Make, others: str) -> None:
    """Models, sleeps and writes are no part of a step, nor are the calls beside them."""
    script = (
        f"import asyncio\n\nasync def main():\n    await asyncio.gather(search(query='a'), {others})\n    return 1\n"
    )
    fakes = {"search": lambda query: 1, "llm": lambda *_, **__: "x", "note": lambda text: 1}
    run = play(script, fakes=fakes, in_place=True)
    assert await run.run() == 1
    assert not run.made


async def test_calls_of_a_join_with_a_timeout_are_left_to_the_run(play: Make) -> None:
    script = """
async def main():
    return await parallel([task(search, query="a" * n) for n in range(1, 5)], timeout=60)
"""
    run = play(script, fakes={"search": lambda query: len(query)}, in_place=True)
    assert await run.run() == [1, 2, 3, 4]
    assert not run.made


async def test_calls_beside_a_sleep_of_an_earlier_step_are_left_to_the_run(play: Make) -> None:
    """Or the script would be told of what ends after it before it is told of the sleep."""
    script = """
import asyncio

async def main():
    nap = asyncio.create_task(asyncio.sleep(60))
    found = [await search(query="a" * n) for n in range(1, 4)]
    await nap
    return [*found, await search(query="last")]
"""
    run = play(script, fakes={"search": lambda query: len(query)}, in_place=True)
    assert await run.run() == [1, 2, 3, 4]
    assert (run.made.total(), run.called['main_4 search:8 "last"']) == (1, 0)


OF_TWO_FILES = """
import helpers

async def main():
    found = []
    for tries in (parallel, settled):
        try:
            found += await tries([task(helpers.look, n=1)])
        except helpers.Broken as error:
            found.append(str(error))
    return [found[0], found[1]["error"]]
# ==== file: helpers.py ====
class Broken(Exception):
    pass

async def look(n: int):
    raise Broken(await search(query="helpers__Broken" * n))
"""


async def test_a_program_catches_an_error_of_its_module_that_a_task_has_raised(play: Make) -> None:
    """And its text stays as it is."""
    run = play(OF_TWO_FILES, fakes={"search": lambda query: "helpers__key"})
    assert await run.run() == ["helpers__key", "helpers.Broken: helpers__key"]
    assert "helpers.look#1/search:helpers.py:5" in {spec.call_site for _, _, spec in run.nodes.values()}
