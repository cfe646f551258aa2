"""A person repairs a run and starts others, by the forms of the UI alone."""

import uuid

from doubles.chromium import BROWSER
from doubles.runs import call, status_of, until
from doubles.sample_runs import start_asking_run
from doubles.web_stack import Handle, WebStack
from doubles.webui import WebUI
from playwright.async_api import expect

pytestmark = BROWSER
GOAL = {"goal": "Which is longer, the Nile or the Amazon?"}


async def parked(stack: WebStack) -> Handle:
    """A run that waits for the file of its own name to appear and then for someone to retry its node."""
    name = uuid.uuid4().hex
    nodes = [call("a", "fail", args={"unless": name}), call("b", args={"value": "$a.value"})]
    run = await stack.start("parked", plan={"nodes": nodes, "answer": "$b.value"})
    await until(run, lambda view: view["status"] == "blocked")
    (stack.cache / name).touch()
    return run


async def test_a_parked_run_is_repaired_by_the_update_form_and_finishes(ui: WebUI, stack: WebStack) -> None:
    """Each wrong update before the right one is refused in a sentence, without a traceback."""
    run = await parked(stack)
    await ui.open(run, "user-metadata")
    form = await ui.update_form("retry_node", {"node": "zz"})
    for refused, following in (
        ("there is no node `zz`; `sennit status` and the query `plan` list them", '{"nod": "a"}'),
        ("unknown field", '["a"]'),
        ("retry_node takes one JSON object, not a list", '{"node": "a"}'),
    ):
        await form.get_by_role("button", name="Submit").click()
        await expect(form.get_by_role("alert").filter(has_text=refused)).to_be_visible()
        await expect(form.get_by_text('File "')).to_have_count(0)
        await ui.fill(form, following)
    await form.get_by_role("button", name="Submit").click()
    await expect(form).to_be_hidden()
    report = await run.result()
    assert (report["status"], report["answer"]) == ("done", "recovered")
    await ui.open(run, "user-metadata")
    await expect(ui.status).to_contain_text("Completed")
    await expect(ui.board.get_by_text("done").first).to_be_visible()
    assert await ui.warnings() == []


async def test_a_run_is_started_from_the_form_and_again_like_this_one(ui: WebUI, stack: WebStack) -> None:
    names = [f"agent-form-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    await ui.page.goto(f"{ui.url}/start-workflow")
    await ui.start(id=names[0], queue="sennit.workflow", given=GOAL)
    first = await answer_of(stack, ui, names[0])
    assert "Nile" in first

    await ui.open(stack.client.get_workflow_handle(names[0], run_id=(await described(stack, names[0]))))
    await ui.page.get_by_role("button", name="More Actions").click()
    await ui.page.get_by_role("menuitem", name="Start Workflow Like This One").click()
    await expect(ui.page.locator("main .cm-content").first).to_contain_text("Nile")  # the form has got the run's input
    await ui.start(id=names[1])
    assert await answer_of(stack, ui, names[1]) == first


async def described(stack: WebStack, name: str) -> str:
    """Return the run id behind a workflow id."""
    return (await stack.client.get_workflow_handle(name).describe()).run_id


async def answer_of(stack: WebStack, ui: WebUI, name: str) -> str:
    """Wait until the run that a form started is done and return its answer."""
    await expect(
        ui.page.get_by_text("Workflow Started", exact=False).or_(ui.page.get_by_text(name)).first
    ).to_be_visible()
    report = await stack.client.get_workflow_handle(name).result()
    assert report["status"] == "done"
    return str(report["answer"])


async def test_a_write_is_approved_by_the_form_with_what_the_board_shows(ui: WebUI, stack: WebStack) -> None:
    run = await start_asking_run(stack)
    await ui.open(run, "user-metadata")
    await expect(ui.board.get_by_text("-The Danube is 2,800 km long.")).to_be_visible()
    await expect(ui.board.get_by_text("mails[2]  text: Dear reader 2, the note is out.")).to_be_visible()
    [item] = [item for item in (await run.query("plan"))["blocked"] if item["node"] == "publish"]
    await expect(ui.board.get_by_text(item["example"]["digest"]).first).to_be_visible()
    form = await ui.update_form("approve", item["example"])
    await form.get_by_role("button", name="Submit").click()
    await expect(form).to_be_hidden()
    await until(run, lambda view: status_of(view, "publish") == "succeeded")
    assert (stack.cache / "note.md").read_text().startswith("# The Danube\n\nThe Danube is 2,850 km long")
