"""`sennit report` on real runs: of one run, of a fork beside its origin, and of runs that cannot be shown whole."""

import io
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call, until
from temporalio.client import Client

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Exit, NoAnswer, Refused, RunNotFound
from sennit.starter.client.run import Run
from sennit.starter.commands import report
from sennit.starter.report.content import NO_WORKER
from sennit.starter.terminal.console import Terminal

pytestmark = pytest.mark.timeout(100)
HOSTILE = "</script><script>alert(1)</script>"
NODES = [call("one", args={"value": HOSTILE}), call("two", "nap"), call("both", "nap", needs=["one", "two"])]


@pytest.fixture
def sennit(client: Client, monkeypatch: pytest.MonkeyPatch) -> Sennit:
    """The client that the command has connected."""
    found = Sennit(client, local_server(client.service_client.config.target_host, None))

    async def connect(*_: Any) -> Sennit:
        return found

    monkeypatch.setattr(report, "connect", connect)
    return found


async def written(folder: Path, *runs: str, **given: Any) -> tuple[str, Terminal]:
    """Return the page that the command writes."""
    file = folder / "page.html"
    terminal = Terminal(output="json", out=io.StringIO(), err=io.StringIO())
    names = {"run": runs[0], "diff": None} if len(runs) == 1 else {"run": "", "diff": list(runs)}
    args = Namespace(**{**names, "out": str(file), **given})
    assert await report.run(args, terminal) is Exit.ANSWER
    assert isinstance(terminal.out, io.StringIO)
    said = json.loads(terminal.out.getvalue())
    assert said == {"file": str(file), "bytes": file.stat().st_size, "runs": list(runs)}
    return file.read_text("utf-8"), terminal


async def test_the_page_of_a_finished_run_has_its_answer_figures_graph_timeline_and_nodes(
    sennit: Sennit, start: Start, tmp_path: Path
) -> None:
    handle = await start(plan={"nodes": NODES, "answer": {"said": "$one", "n": "$both"}})
    await handle.result()
    page, _ = await written(tmp_path, handle.id)
    for part in ("answer", "figures", "graph", "timeline", "nodes"):
        assert f'<section id="{part}">' in page
    assert page.count('data-node="both"') >= 3, "its box, its bar and its row"
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<script") == 1


async def test_a_run_that_waits_for_a_person_is_shown_as_it_stands(
    sennit: Sennit, start: Start, tmp_path: Path
) -> None:
    gate = {"id": "g", "kind": "gate", "question": "Go?", "schema": {"type": "boolean"}}
    handle = await start(plan={"nodes": [gate, call("one")], "answer": ["$g", "$one"]})
    await until(handle, lambda view: view["counts"].get("succeeded", 0) == 1)
    page, _ = await written(tmp_path, handle.id)
    assert '<span class="status blocked">' in page
    assert "waiting" in page


async def test_a_fork_is_compared_with_its_origin(sennit: Sennit, start: Start, tmp_path: Path) -> None:
    handle = await start(plan={"nodes": NODES, "answer": "$both"})
    await handle.result()
    fork = await sennit.fork(await sennit.origin(handle.id))
    await fork.report()
    page, _ = await written(tmp_path, handle.id, fork.id)
    assert "3 calls were taken over" in page
    assert "Both runs have the same answer." in page


async def test_without_a_worker_there_is_a_page_with_what_the_history_has(
    sennit: Sennit, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await start(plan={"nodes": NODES, "answer": "$both"})
    await handle.result()

    async def view(_: Run[Any]) -> None:
        raise NoAnswer("no worker")

    monkeypatch.setattr(Run, "view", view)
    page, terminal = await written(tmp_path, handle.id)
    assert NO_WORKER in page
    assert 'id="figures"' in page
    assert isinstance(terminal.err, io.StringIO)
    assert NO_WORKER in terminal.err.getvalue()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"run": ""}, Refused),
        ({"run": "a", "diff": ["a", "b"]}, Refused),
        ({"run": "there-is-none"}, RunNotFound),
    ],
)
async def test_what_cannot_be_shown_is_refused(sennit: Sennit, given: dict[str, Any], error: type[Exception]) -> None:
    terminal = Terminal(out=io.StringIO(), err=io.StringIO())
    with pytest.raises(error):
        await report.run(Namespace(**{"diff": None, "out": "", **given}), terminal)


async def test_a_file_that_cannot_be_written_is_named(sennit: Sennit, start: Start, tmp_path: Path) -> None:
    handle = await start(plan={"nodes": [call("one", "nap")]})
    await handle.result()
    with pytest.raises(Refused, match="name another file with -o"):
        await written(tmp_path / "missing", handle.id)
