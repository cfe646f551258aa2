"""A person approves what will run: the values are shown, and the approval holds for them alone."""

from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.resets import EVERYTHING, reset, scheduled
from doubles.runs import call, insist, until
from doubles.tools import calls
from temporalio.client import Client, WorkflowUpdateFailedError

from sennit.activities.nodes.effect_ledger import arguments_digest

WRITES = {"kind": "tool", "tool": "note", "args": {"text": "item $item.n"}}


async def asked(handle: Handle, count: int = 1) -> list[dict[str, Any]]:
    """Return what the run waits for, once it waits for so many things."""
    view = await until(handle, lambda view: len(view["blocked"]) == count)
    found: list[dict[str, Any]] = view["blocked"]
    return found


async def again(handle: Handle, before: dict[str, Any]) -> dict[str, Any]:
    """Return what the run asks after another question."""
    view = await until(handle, lambda view: bool(view["blocked"]) and view["blocked"][0] != before)
    found: dict[str, Any] = view["blocked"][0]
    return found


def line_of(report: dict[str, Any], node: str) -> dict[str, Any]:
    return next(line for line in report["nodes"] if line["id"] == node)


async def test_the_values_are_shown_and_the_report_says_who_approved_what(start: Start, cache: Path) -> None:
    nodes = [call("a", args={"value": "See\nyou"}), call("w", "note", args={"text": "$a.value, Ann $$5"})]
    handle = await start(plan={"nodes": nodes})
    [item] = await asked(handle)
    digest = arguments_digest("note", {"text": "See\nyou, Ann $5"})
    assert item["shown"] == "text:\n  See\n  you, Ann $5"
    assert item["example"] == {"node": "w", "digest": digest[:20]}
    assert item["command"] == f"sennit approve {handle.id} w --digest {digest[:20]}"
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("approve", {"node": "w", "digest": "3f2a9c01b4d7e85a6c21"})
    with pytest.raises(WorkflowUpdateFailedError) as short:
        await handle.execute_update("approve", {"node": "w", "digest": digest[:12]})
    assert "a digest has 20 digits; read again what `w` would write" in str(short.value.cause)
    assert f"something else by now; read it again: its digest is {digest[:20]}" in str(refused.value.cause)
    assert await insist(handle, "approve", {**item["example"], "by": "ann"}) == "w may run"
    line = line_of(await handle.result(), "w")
    assert line["approved"] == {"digest": digest, "by": "ann"}
    assert handle.first_execution_run_id is not None
    assert calls(cache, handle.first_execution_run_id) == ["a~1", "w~1"]


async def test_what_changes_before_the_write_is_asked_about_again(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_text("one\ntwo\n")
    handle = await start(plan={"nodes": [call("w", "publish", args={"path": str(file), "text": "one\n2\n"})]})
    [item] = await asked(handle)
    assert item["shown"] == "--- note.md (now)\n+++ note.md (then)\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    file.write_text("somebody else was here\n")
    await insist(handle, "approve", item["example"])
    other = await again(handle, item)
    assert "-somebody else was here\n" in other["shown"]
    assert other["example"] != item["example"]
    assert file.read_text() == "somebody else was here\n"
    await insist(handle, "approve", other["example"])
    await handle.result()
    assert file.read_text() == "one\n2\n"


async def test_a_person_changes_an_argument_which_is_checked_like_any(start: Start, cache: Path) -> None:
    handle = await start(plan={"nodes": [call("w", "note", args={"text": "draft"})]})
    [item] = await asked(handle)
    assert item["arguments"] == {"text": ["string"]}
    for args, why in (
        ({"txt": "typo"}, "`w` has no argument `txt`; did you mean `text`?"),
        ({"text": 7}, "`w` takes as `text` string, and this is integer"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await insist(handle, "approve", {**item["example"], "args": args})
        assert why in str(refused.value.cause)
    await insist(handle, "approve", {**item["example"], "args": {"text": ""}})
    other = await again(handle, item)
    assert other["shown"].startswith("These changes do not fit: ")
    assert other["example"] == item["example"]
    given = {**item["example"], "args": {"text": "mine, $a stays"}}
    assert await insist(handle, "approve", given) == "w may run with your changes of text"
    line = line_of(await handle.result(), "w")
    written = arguments_digest("note", {"text": "mine, $a stays"})
    assert (line["approved"]["digest"], line["approved"]["args"]) == (written, ["text"])
    assert f"{handle.first_execution_run_id}/w/1 mine, $a stays\n" in (cache / "notes.txt").read_text()


async def test_a_write_that_a_person_has_changed_is_taken_over_as_it_was_made(
    client: Client, start: Start, cache: Path
) -> None:
    """By the same plan after a reset, by a fork, and by a fork of that one."""
    end = {"id": "end", "kind": "gate", "question": "End?", "needs": ["w"]}
    plan = {"nodes": [call("w", "post", args={"text": "draft"}), end], "answer": "$w"}
    handle = await start(plan=plan)
    [item] = await asked(handle)
    await insist(handle, "approve", {**item["example"], "args": {"text": "changed by Ann"}})
    await until(handle, lambda view: [item["node"] for item in view["blocked"]] == ["end"])

    homes: list[str] = []
    run = await reset(client, handle, scheduled("w.question"), without=EVERYTHING)
    for first_run in (handle.first_execution_run_id, "of the fork", "of the fork of the fork"):
        if homes:
            run = await start(plan=plan, origins=homes)
            first_run = run.first_execution_run_id
        view = await until(run, lambda view: bool(view["blocked"]))
        assert [item["node"] for item in view["blocked"]] == ["end"], view["blocked"]
        await insist(run, "answer", {"node": "end", "value": "yes"})
        assert (await run.result())["answer"] == {"posted": "changed by Ann"}
        homes.insert(0, first_run or "")
    assert (cache / "posts.txt").read_text().count("changed by Ann") == 1


async def test_an_edit_in_a_fork_is_asked_about_what_was_written_in_place_of_the_script_s_own_words(
    start: Start, cache: Path
) -> None:
    """The fork has taken the write over, which a person had changed before."""
    script = "async def main():\n    return await note(text='own words')\n"
    nodes = [{"id": "main", "kind": "program", "script": script}]
    origin = await start(plan={"nodes": nodes})
    [item] = await asked(origin)
    await insist(origin, "approve", {**item["example"], "args": {"text": "words of a person"}})
    await origin.result()
    homes = [origin.first_execution_run_id]
    fork = await start(plan={"nodes": nodes}, origins=homes)
    await fork.result()
    other = [{**nodes[0], "script": script.replace("own words", "words of a person")}]
    last = await start(plan={"nodes": other}, origins=[fork.first_execution_run_id, *homes])
    [item] = await asked(last)
    assert item["shown"].startswith('the old script wrote note {"text":"words of a person"} at ')


async def test_changes_replace_nothing_that_was_not_shown(start: Start, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("kept\n")
    handle = await start(plan={"nodes": [call("w", "publish", args={"path": str(tmp_path / "a.md"), "text": "new\n"})]})
    [item] = await asked(handle)
    await insist(handle, "approve", {**item["example"], "args": {"path": str(tmp_path / "other.md")}})
    other = await again(handle, item)
    assert other["shown"].startswith("With these changes it would replace what you were not shown.")
    await insist(handle, "approve", {**other["example"], "args": {"path": str(tmp_path / "b.md")}})
    await handle.result()
    assert [(tmp_path / name).read_text() for name in ("b.md", "other.md")] == ["new\n", "kept\n"]


async def test_the_writes_of_a_map_are_shown_and_approved_together(start: Start, cache: Path) -> None:
    nodes = [call("a", "count", args={"count": 3}), {"id": "m", "kind": "map", "over": "$a.items", "do": WRITES}]
    handle = await start(plan={"nodes": nodes})
    together, *single = await asked(handle, 4)
    assert together["question"].startswith("may these 3 run? m map note")
    assert together["shown"] == "\n".join(f'm[{number}]  text: "item {number}"' for number in range(3))
    assert [item["parts"] for item in (together, *single)] == [3, 0, 0, 0]
    assert [item["shown"] for item in single] == [f'text: "item {number}"' for number in range(3)]
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("approve", {"node": "m"})
    assert "`m` is about 3 writes; name what you have read of them with `digest`" in str(refused.value.cause)
    await insist(handle, "approve", together["example"])
    assert (await handle.result())["answer"] == [{"value": 6}] * 3
