"""A program loses all its workers, and a person repairs it by the forms of the UI alone."""

import uuid
from collections import Counter
from pathlib import Path

from doubles.chromium import BROWSER
from doubles.layout import flaws
from doubles.runs import until
from doubles.webui import WebUI
from doubles.worker_processes import WorkerProcesses
from playwright.async_api import BrowserContext, expect

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.workflows.messages.converter import connect
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.plan.programs.program_plan import program_plan

pytestmark = BROWSER
SCRIPT = """
async def look(number: int, repaired: str) -> int:
    found = await nap(value=number)
    if number in (7, 33):
        await fail(message=f"page {number} is gone", unless=repaired)
    else:
        await nap(value="read")
    return found["value"]

async def main(repaired: str) -> int:
    return sum(await parallel([task(look, number=number, repaired=repaired) for number in range(51)]))
"""


async def test_of_102_calls_the_two_that_failed_run_again_on_fresh_workers(
    context: BrowserContext, tmp_path: Path
) -> None:
    repaired = uuid.uuid4().hex
    server = DevServer(await obtain(pinned_only=True), None, tmp_path / "server.log", port=0, ui_port=0)
    await server.start()
    processes = WorkerProcesses(server.address, tmp_path / "state")
    ui = await WebUI.opened(context, server.ui_url or "")
    try:
        processes.start("workflow", "tools")
        client = await connect(server.address)
        request = {"plan": program_plan(SCRIPT), "inputs": {"repaired": repaired}}
        run = await client.start_workflow("AgentRun", request, id="agent-program", task_queue=WORKFLOW)
        view = await until(run, lambda view: len(view["blocked"]) == 2)
        before = Counter(processes.calls(run.first_execution_run_id or ""))
        assert (len(before), set(before.values())) == (102, {1})

        processes.kill()
        (processes.index / repaired).touch()
        processes.start("workflow", "tools")
        failed = {item["node"]: item["question"] for item in view["blocked"]}
        assert {text.partition(" ")[0] for text in failed.values()} == {"look#8/fail:5", "look#34/fail:5"}
        shown = await run.query("script")
        assert [(line["line"], line["calls"]) for line in shown["lines"] if line["calls"].get("failed")] == [
            (5, {"failed": 2})
        ]
        for node, question in failed.items():
            await ui.open(run, "user-metadata")
            await expect(ui.board.get_by_text(f'{{"node": "{node}"}}', exact=True).first).to_be_visible()
            await expect(ui.board.get_by_text(question).first).to_be_visible()
            await expect(ui.board.get_by_text("look \N{MULTIPLICATION SIGN}51", exact=True)).to_be_visible()
            assert await flaws(ui.board) == []
            form = await ui.update_form("retry_node", {"node": node})
            await form.get_by_role("button", name="Submit").click()
            await expect(form).to_be_hidden()
        report = await run.result()
        assert (report["status"], report["answer"]) == ("done", sum(range(51)))
        again = Counter(processes.calls(run.first_execution_run_id or "")) - before
        assert again == Counter(f"{node}~2" for node in failed)
    finally:
        processes.kill()
        await ui.page.close()
        await server.stop()
