"""The operator's rules about writes in runs: what they let through, ask for and refuse, and what the run records."""

from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start, remembered_or_not, serving, starting
from doubles.resets import EVERYTHING, reset, scheduled
from doubles.runs import approve, call, insist, until
from doubles.tools import calls
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.nodes.effect_ledger import arguments_digest
from sennit.activities.toolbox import load_tools
from sennit.activities.toolbox.approval_rules import ApprovalRules, Rule
from sennit.starter.client.audit import AuditLine, audit
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server

RULES = (
    Rule(name="hello", tool="note", decision="allow", equal={"text": "hello"}),
    Rule(name="secret", tool="note", decision="refuse", equal={"text": "secret"}),
    Rule(name="careful", tool="note", decision="ask", equal={"text": "careful"}),
)


@pytest.fixture
def host(cache: Path, artifacts: Path, docs: Path) -> Activities:
    allowed = Rule(name="file", tool="publish", decision="allow", equal={"path": str(cache / "allowed.md")})
    return ruled(cache, artifacts, docs, *RULES, allowed)


def ruled(cache: Path, artifacts: Path, docs: Path, *rules: Rule) -> Activities:
    """Return the activities of a worker whose operator has these rules, and lets runs have `approval: never`."""
    paths = WorkerPaths(artifacts, cache, docs, (Path("/"),))
    tools = load_tools(["doubles.tools"])
    return Activities(paths, tools, identity="tests", approval="never", rules=ApprovalRules(rules))


def writes(**texts: str) -> dict[str, Any]:
    nodes = [call(name, "note", args={"text": text}) for name, text in texts.items()]
    return {"nodes": nodes, "answer": [f"${name}" for name in texts]}


async def audited(client: Client, handle: Handle) -> list[AuditLine]:
    sennit = Sennit(client, local_server(client.service_client.config.target_host, None))
    lines, silent = await audit(sennit, handle.id)
    assert silent == []
    return lines


@remembered_or_not
async def test_a_rule_decides_and_the_run_says_which_about_what(client: Client, start: Start, cache: Path) -> None:
    handle = await start(plan=writes(a="hello", b="secret", c="other"), on_failure="partial")
    view = await until(handle, lambda view: len(view["blocked"]) == 1)
    assert [item["node"] for item in view["blocked"]] == ["c"]
    await insist(handle, "reject", {"node": "c", "reason": "wrong", "by": "ann"})
    report = await handle.result()
    lines = {line["id"]: line for line in report["nodes"]}
    assert lines["a"]["approved"] == {"digest": arguments_digest("note", {"text": "hello"}), "rule": "hello"}
    assert lines["b"]["error"] == "Rejected: the rule secret of the operator refuses it"
    assert "the write `b` was refused: the rule secret of the operator refuses it" in "\n".join(report["warnings"])
    assert handle.first_execution_run_id is not None
    assert calls(cache, handle.first_execution_run_id) == ["a~1"]

    found = {line.node: line for line in await audited(client, handle)}
    assert (found["a"].update, found["a"].rule, found["a"].by) == ("approve", "hello", "")
    assert found["a"].digest == arguments_digest("note", {"text": "hello"})[:20]
    assert (found["b"].update, found["b"].rule) == ("reject", "secret")
    assert (found["c"].update, found["c"].rule, found["c"].by, found["c"].text) == ("reject", "", "ann", "wrong")
    assert all(line.at > 0 for line in found.values())


async def test_a_run_that_needs_no_approval_asks_where_a_rule_does(client: Client, start: Start, cache: Path) -> None:
    plan = writes(a="hello", b="secret", c="careful", d="other")
    handle = await start(plan=plan, approval="never", on_failure="partial")
    view = await until(handle, lambda view: len(view["blocked"]) == 1)
    assert [item["node"] for item in view["blocked"]] == ["c"]
    await approve(handle, "c", by="ann")
    await handle.result()
    assert handle.first_execution_run_id is not None
    assert sorted(calls(cache, handle.first_execution_run_id)) == ["a~1", "c~1", "d~1"]
    found = {line.node: line.rule or line.by for line in await audited(client, handle)}
    assert found == {"a": "hello", "b": "secret", "c": "ann"}


async def test_a_rule_that_refuses_counts_for_what_a_person_has_changed(start: Start, cache: Path) -> None:
    handle = await start(plan=writes(w="other"), on_failure="partial")
    await until(handle, lambda view: bool(view["blocked"]))
    await approve(handle, "w", args={"text": "secret"})
    report = await handle.result()
    assert report["nodes"][0]["error"] == "Rejected: the rule secret of the operator refuses it"
    assert handle.first_execution_run_id is not None
    assert calls(cache, handle.first_execution_run_id) == []


async def test_a_change_that_does_not_fit_asks_again_with_rules_as_without(start: Start, cache: Path) -> None:
    handle = await start(plan=writes(w="other"))
    await until(handle, lambda view: bool(view["blocked"]))
    await approve(handle, "w", args={"text": ""})
    view = await until(handle, lambda view: "do not fit" in str(view["blocked"]) or view["status"] == "partial")
    assert view["blocked"][0]["shown"].startswith("These changes do not fit: ")
    await approve(handle, "w")
    assert (await handle.result())["status"] == "done"
    assert handle.first_execution_run_id is not None
    assert calls(cache, handle.first_execution_run_id) == ["w~1"]


async def test_a_rule_that_allows_a_changed_value_does_not_allow_the_one_before(
    start: Start, cache: Path, tmp_path: Path
) -> None:
    """What the person changed would replace a file that they were not shown. So they are asked about the first file
    again: the rule speaks of the other one only.
    """
    shown, other = tmp_path / "shown.md", cache / "allowed.md"
    shown.write_text("one")
    other.write_text("two")
    handle = await start(plan={"nodes": [call("w", "publish", args={"path": str(shown), "text": "new"})]})
    await until(handle, lambda view: bool(view["blocked"]))
    await approve(handle, "w", args={"path": str(other)})
    view = await until(handle, lambda view: "not shown" in str(view["blocked"]))
    assert view["blocked"][0]["node"] == "w"
    assert (shown.read_text(), other.read_text()) == ("one", "two")
    await approve(handle, "w")
    report = await handle.result()
    assert "rule" not in report["nodes"][0]["approved"]
    assert (shown.read_text(), other.read_text()) == ("new", "two")


async def test_writes_of_maps_and_sub_agents_are_decided_each_by_itself(client: Client, start: Start) -> None:
    each = {"kind": "tool", "tool": "note", "args": {"text": "$item"}}
    listed = call("list", args={"value": ["hello", "secret"]})
    wide = {"id": "m", "kind": "map", "over": "$list.value", "as": "item", "max_items": 3}
    plan = {"nodes": [listed, {**wide, "do": {**each, "on_error": "skip"}}]}
    handle = await start(plan=plan, on_failure="partial")
    await handle.result()
    found = {line.node: line.rule for line in await audited(client, handle)}
    assert found == {"m[0]": "hello", "m[1]": "secret"}


async def test_a_decision_is_kept_whatever_the_rules_say_by_then(
    client: Client, cache: Path, artifacts: Path, docs: Path
) -> None:
    """The run is reset to before it asked, on workers whose operator has other rules: what was decided stays so."""
    first = ruled(cache, artifacts, docs, *RULES)
    async with starting(client) as start:
        async with serving(client, first):
            plan = writes(a="hello", b="secret")
            plan["nodes"].append({"id": "g", "kind": "gate", "question": "On?"})
            handle = await start(plan=plan, on_failure="partial")
            await until(handle, lambda view: any(node["status"] == "succeeded" for node in view["nodes"]))
            await until(handle, lambda view: any(node["status"] == "failed" for node in view["nodes"]))
        turned = [rule.model_copy(update={"decision": "refuse"}) for rule in RULES[:1]]
        async with serving(client, ruled(cache, artifacts, docs, *turned)):
            again = await reset(client, handle, scheduled("a"), without=EVERYTHING)
            await until(again, lambda view: any(node["status"] == "failed" for node in view["nodes"]))
            await insist(again, "answer", {"node": "g", "value": "yes"})
            report = await again.result()
    lines = {line["id"]: line for line in report["nodes"]}
    assert lines["a"]["status"] == "succeeded"
    assert lines["b"]["error"] == "Rejected: the rule secret of the operator refuses it"
