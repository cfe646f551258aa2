"""The page of `sennit report` in the browser: it asks for nothing, runs nothing of a run's, and fits any screen."""

from pathlib import Path

import pytest
import pytest_asyncio
from doubles.chromium import BROWSER
from doubles.reported import HOSTILE, layered
from playwright.async_api import BrowserContext, Page, Request, expect

from sennit.starter.report.comparison import comparison_page
from sennit.starter.report.page import report_page

pytestmark = BROWSER


class Opened:
    """A page in a tab, and whatever it has done that it should not."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda message: self.wrong.append(message.text))
        page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        page.on("request", self._requested)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith("file:"):
            self.wrong.append(request.url)

    async def show(self, file: Path, text: str) -> None:
        file.write_text(text, "utf-8", "replace")
        await self.page.goto(file.as_uri())


@pytest_asyncio.fixture(loop_scope="session")
async def tab(context: BrowserContext) -> Opened:
    return Opened(await context.new_page())


async def test_what_a_hostile_model_wrote_neither_runs_nor_loads(tab: Opened, tmp_path: Path) -> None:
    for text in (
        report_page(layered(45, 9, text=HOSTILE)),
        comparison_page(layered(9, 3, text=HOSTILE), layered(9, 3, text=f"{HOSTILE}!", seed=8)),
    ):
        await tab.show(tmp_path / "page.html", text)
        assert "script" in await tab.page.inner_text("main")
        assert await tab.page.title() != "broken"
        assert await tab.page.locator("img, iframe, main script, [onclick]").count() == 0
    assert tab.wrong == []
    await tab.page.close()


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_is_no_wider_than_the_screen_and_follows_its_scheme(
    tab: Opened, tmp_path: Path, width: int, scheme: str
) -> None:
    await tab.page.set_viewport_size({"width": width, "height": 900})
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for text in (report_page(layered(45, 9, text="W" * 300)), comparison_page(layered(45, 9), layered(45, 9, seed=8))):
        await tab.show(tmp_path / "page.html", text)
        assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width
    red, *_ = await tab.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red < 60) == (scheme == "dark")
    assert tab.wrong == []
    await tab.page.close()


async def test_two_thousand_nodes_can_be_searched_sorted_and_followed(tab: Opened, tmp_path: Path) -> None:
    await tab.show(tmp_path / "page.html", report_page(layered(2_000, 100, text="word " * 40)))
    page, rows = tab.page, tab.page.locator("#nodes tbody tr:visible")
    await page.locator("#find").fill("source 1234")
    await expect(rows).to_have_count(1)
    await page.locator("#find").fill("")
    await page.locator(".chip.failed").click()
    await expect(rows).to_have_count(48)
    await page.locator("#nodes th", has_text="time").click()
    await page.locator("#nodes th", has_text="time").click()
    times = await rows.evaluate_all("rows => rows.map(row => Number(row.cells[3].dataset.value))")
    assert times == sorted(times, reverse=True)
    await page.locator(".graph [data-node=n7]").hover()
    await expect(page.locator(".marked")).to_have_count(3)
    await page.locator("[data-zoom=in]").click()
    assert await page.evaluate(
        "document.querySelector('.plot').clientWidth > document.querySelector('.gantt').clientWidth * 1.9"
    )
    assert tab.wrong == []
    await page.close()
