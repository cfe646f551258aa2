"""A person looks at runs: the list, the timeline, the board, what is pending, the queries."""

import json

import pytest
from doubles.chromium import BROWSER
from doubles.layout import flaws
from doubles.sample_runs import STATUS, Runs, State
from doubles.webui import WebUI
from playwright.async_api import expect

pytestmark = BROWSER


async def test_the_list_shows_every_run_with_its_state(ui: WebUI, runs: Runs) -> None:
    rows = await ui.listing()
    for (size, state), run in runs.items():
        row = rows.filter(has_text=run.id)
        await expect(row).to_contain_text(STATUS[state])
        await expect(row.get_by_text(state, exact=True)).to_be_visible()
        await expect(row.get_by_text(str(size), exact=True).last).to_be_visible()


@pytest.mark.parametrize(("size", "state"), [(5, "blocked"), (5, "failed"), (50, "running"), (500, "blocked")])
async def test_a_run_can_be_read(ui: WebUI, runs: Runs, size: int, state: State) -> None:
    run = runs[size, state]
    await ui.open(run)
    await expect(ui.status).to_contain_text(STATUS[state])
    await ui.wait_for_bar("gist2" if size == 5 else "page")
    assert await ui.warnings() == []

    await ui.turn("user-metadata")
    await expect(ui.board.get_by_text(state).first).to_be_visible()
    await expect(ui.board.locator("svg").first).to_be_visible()
    assert await flaws(ui.board) == []
    if size == 5:
        for node in ("page1", "gist1", "page2", "gist2", "report"):
            await expect(ui.board.get_by_text(node, exact=True).first).to_be_visible()
    if state == "blocked":
        node = {5: "page1", 500: "page122"}[size]
        await expect(ui.board.get_by_text("answered 503").first).to_be_visible()
        await expect(ui.board.get_by_text(f'{{"node": "{node}"}}', exact=True).first).to_be_visible()
        await expect(ui.board.get_by_text(f"sennit retry {run.id} {node}").first).to_be_visible()
    if (size, state) == (50, "running"):  # what runs is a pending activity, named by its node
        await ui.turn("pending-activities")
        await expect(ui.page.get_by_text("page11", exact=True)).to_be_visible()
        await expect(ui.page.get_by_role("button", name="Pause")).to_be_visible()
    assert await ui.warnings() == []
    if (size, state) == (5, "blocked"):
        await ui.turn("queries")
        assert '"status": "blocked"' in await ui.query("plan")
        found = json.loads(await ui.query("node", {"node": "page1"}))
        assert (found["status"], found["kind"]) == ("failed", "tool")
        assert "retry_node" in await ui.query("help")
