"""The stock Temporal web UI, used as a person uses it."""

import asyncio
import json
import re
from typing import Any

from playwright.async_api import BrowserContext, Error, Frame, FrameLocator, Locator, Page, Request
from temporalio.client import WorkflowHandle

HOSTILE = ".invalid"
"""Hosts that only hostile text names: a request to one, and it was taken for more than text."""
FRAME = re.compile(r"^\s+at (?:.*\()?(\S+?)(?::\d+:\d+)?\)?$", re.MULTILINE)
"""A line of a script error's stack: in which script."""


async def _text_of(frame: Frame) -> str:
    """Return what stands in a frame, or nothing if it is gone by now."""
    try:
        return await frame.locator("body").inner_text(timeout=1_000)
    except Error:
        return ""


class WebUI:
    """One tab of the UI. `alarms` collects what must never happen: dialogs, script errors, requests of hostile text.

    Errors of the UI's own scripts are not among them: they come and go with its races, and no text of a run is in one.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = f"{url}/namespaces/default/workflows"
        self._scripts = f"{url}/_app/"
        self.alarms: list[str] = []
        page.on("dialog", lambda dialog: self.alarms.append(f"dialog: {dialog.message}"))
        page.on("pageerror", self._failed)
        page.on("requestfinished", self._watch)
        page.on("requestfailed", self._watch)
        page.on("popup", lambda popup: self.alarms.append(f"window: {popup.url}"))

    @classmethod
    async def opened(cls, context: BrowserContext, url: str) -> "WebUI":
        """Open a tab that shows the columns of Sennit in lists, and Sennit's errors wherever the UI has any to show."""
        page = await context.new_page()
        columns = ["Status", "Workflow ID", "SennitStatus", "SennitNodesDone", "SennitNodesTotal", "SennitBlockedOn"]
        stored = json.dumps({"default": [{"label": label} for label in columns]})
        await page.add_init_script(f"localStorage.setItem('namespace-workflow-table-columns', {json.dumps(stored)})")
        return cls(page, url)

    def _failed(self, error: Error) -> None:
        if f"imported module: {self._scripts}" in str(error):  # left before it was loaded
            return
        scripts = [script for script in FRAME.findall(error.stack or "") if script != "<anonymous>"]
        if not scripts or not all(script.startswith(self._scripts) for script in scripts):
            self.alarms.append(f"script error: {error}")

    def _watch(self, request: Request) -> None:
        host = request.url.partition("://")[2].partition("/")[0].partition(":")[0]
        if host.endswith(HOSTILE) and request.failure != "csp":  # those that the UI's own policy stops never leave
            self.alarms.append(f"request: {request.url[:200]}")

    async def listing(self, query: str = "") -> Locator:
        """Open the list of workflows and return its rows."""
        await self.page.goto(f"{self.url}?query={query}" if query else self.url)
        rows = self.page.get_by_test_id("workflows-summary-configurable-table-row")
        await rows.first.wait_for()
        return rows

    async def open(self, run: WorkflowHandle[Any, Any], tab: str = "timeline") -> None:
        """Open a run at `timeline`, `user-metadata`, `pending-activities` or `query`."""
        await self.page.goto(f"{self.url}/{run.id}/{run.result_run_id or run.run_id}/{tab}")
        await self.status.wait_for()

    async def turn(self, tab: str) -> None:
        """Change to another tab of the run: `timeline`, `user-metadata`, `pending-activities` or `queries`."""
        await self.page.get_by_test_id(f"{tab}-tab").click()

    @property
    def status(self) -> Locator:
        """The status in the run's heading. Its name is another one since UI 2.55."""
        header = self.page.locator("header")
        return header.get_by_test_id("workflow-status").or_(header.get_by_test_id("execution-status"))

    @property
    def board(self) -> FrameLocator:
        """Current Details: what the run says of itself."""
        return self.page.frame_locator("#user-metadata-current-details")

    @property
    def bars(self) -> Locator:
        """The labels of the timeline up to UI 2.54, one each activity, timer, update."""
        return self.page.locator("svg text.cursor-pointer")

    async def wait_for_bar(self, text: str) -> None:
        """Wait until the timeline has a label with this text. Since UI 2.55 each is Markdown in a frame of its own."""
        drawn = self.bars.filter(has_text=text)
        async with asyncio.timeout(30):
            while not await drawn.count() and not any([text in await _text_of(frame) for frame in self.page.frames]):
                await asyncio.sleep(0.1)

    async def warnings(self) -> list[str]:
        """Return what the panel Common Errors says of the run; nothing when the UI has no panel to show."""
        return await self.page.get_by_test_id("workflow-common-errors").all_inner_texts()

    async def fill(self, place: Locator, given: Any) -> None:
        """Write JSON into one of the UI's code boxes, over whatever it holds, and leave it: then the UI lays it out."""
        box = place.locator(".cm-content").filter(visible=True)
        await box.click()
        await self.page.keyboard.press("ControlOrMeta+a")
        await self.page.keyboard.insert_text(given if isinstance(given, str) else json.dumps(given))
        await box.blur()

    async def query(self, name: str, given: Any = None) -> str:
        """Run a query on the page of queries and return what it shows."""
        await self.page.get_by_role("button").filter(has=self.page.locator("#query-select")).click()
        await self.page.get_by_role("option", name=re.compile(rf"^{name}\b")).click()
        if given is not None:
            await self.fill(self.page.get_by_test_id("query-input"), given)
        await self.page.get_by_role("button", name="Run Query").click()
        await self.page.get_by_role("button", name="Refresh").wait_for()
        return await self.page.get_by_test_id("query-result").locator(".cm-content").inner_text()

    async def update_form(self, name: str, given: Any) -> Locator:
        """Fill in the form Send an Update and return it."""
        await self.page.get_by_role("button", name="More Actions").click()
        await self.page.get_by_role("menuitem", name="Send an Update").click()
        form = self.page.get_by_role("dialog").filter(visible=True)
        await form.get_by_role("button", name="Select an Update").click()
        await form.get_by_role("option", name=re.compile(rf"^{name}\b")).click()
        await self.fill(form, given)
        return form

    async def start(self, *, id: str, queue: str = "", given: Any = None) -> None:  # noqa: A002  # as the form has it
        """Fill in what is named of the form Start Workflow and send it, from wherever the form is open."""
        await self.page.locator("#workflowId").fill(id)
        if queue:
            await self.page.locator("#taskQueue").fill(queue)
            await self.page.locator("#workflowType").fill("AgentRun")
        if given is not None:
            await self.fill(self.page.locator("main"), given)
        await self.page.get_by_role("button", name="Start Workflow", exact=True).click()
