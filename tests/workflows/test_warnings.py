"""What a run says at its end, and while it runs, of what went well but not wholly."""

from pathlib import Path

from doubles.local_workers import serving
from doubles.runs import call
from doubles.stores import store_in
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.workflows.messages import queues


async def test_a_run_warns_of_documents_that_it_could_not_read(client: Client, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "nile.md").write_text("# The Nile\n\nIt is long.")
    (docs / "broken.txt").write_bytes(b"\0\1")
    host = Activities(WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", docs, ()), load_tools(), identity="tests")
    nodes = [call(f"n{number}", "search", args={"query": f"nile {number}"}) for number in range(3)]
    async with serving(client, host):
        given = {"plan": {"nodes": nodes, "answer": "$n0.items"}}
        handle = await client.start_workflow("AgentRun", given, id="agent-warns", task_queue=queues.WORKFLOW)
        report = await handle.result()
        view = await handle.query("plan")
    message = "1 of the documents could not be read and were not searched: 'broken.txt' is not text"
    assert report["status"] == "done"
    assert report["warnings"] == view["warnings"] == [message]
