"""Takes the pictures in docs/pictures, of real runs in the stock web UI: `make pictures`.

Fails, after taking all, when a text of a drawing is cut, overlaps another or is too small, or a picture is too big.
"""

import asyncio
import logging
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from doubles.chromium import WIDTH, NoChromium, Scheme, browsing, window
from doubles.layout import flaws
from doubles.sample_runs import SIZES, Runs, start_asking_run, start_program, start_sample_runs
from doubles.web_stack import Handle, WebStack, web_stack
from doubles.webui import WebUI
from PIL import Image, ImageChops
from playwright.async_api import Locator

from sennit.starter.client.request import markdown_summary, slug
from sennit.starter.commands.ask import QUESTION

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
QUESTIONS = (
    "How much higher is Mont Blanc than Kilimanjaro?",
    "Which is longer, the Nile or the Amazon?",
    "Which of Everest, K2 and Denali is the highest?",
    QUESTION,
)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
SCALE = 1.5
WIDE, TALL = 1_640, 3_000
COLOURS = 96
TALLEST, MARGIN = 900, 24
MOST_BYTES = 150_000

CUT_LABELS = """labels => labels.filter(label => {
  const [part, whole] = [label, label.closest("svg:not(svg svg)")].map(element => element.getBoundingClientRect());
  return part.left < whole.left || part.right > whole.right;
}).map(label => label.textContent)"""


class Camera:
    """Takes pictures in one colour scheme. `faults` says what is wrong with them."""

    def __init__(self, ui: WebUI, scheme: Scheme) -> None:
        self._ui = ui
        self._scheme = scheme
        self.faults: list[str] = []

    async def board(self, name: str, run: Handle, *, whole: bool = True) -> None:
        """Take the board of a run, or its upper part with the drawing, once this has been measured."""
        await self._ui.open(run, "user-metadata")
        drawing = self._ui.board.locator("svg").first
        await drawing.wait_for()
        self.faults += [f"{name}-{self._scheme}: {flaw}" for flaw in await flaws(self._ui.board)]
        end = TALLEST if whole else await drawing.evaluate("svg => svg.getBoundingClientRect().bottom")
        await self._take(name, self._ui.page.locator("#user-metadata-current-details"), end)

    async def timeline(self, name: str, run: Handle) -> None:
        """Take the timeline of a run, first things first."""
        await self._ui.open(run)
        await self._ui.page.get_by_role("button", name="Descending").click()
        await self._ui.bars.last.wait_for()
        cut = await self._ui.bars.evaluate_all(CUT_LABELS)
        self.faults += [f"{name}-{self._scheme}: {label} is cut" for label in cut]
        await self._take(name, self._ui.page.locator("svg:has(text.cursor-pointer)").first)

    async def listing(self, name: str) -> None:
        """Take the list of all runs, in a window wide enough for Sennit's columns."""
        await self._ui.page.set_viewport_size({"width": WIDE, "height": TALL})
        rows = await self._ui.listing()
        await self._ui.page.get_by_role("button", name="Collapse saved views").click()
        await self._take(name, rows.first.locator("xpath=ancestor::table"))
        await self._ui.page.set_viewport_size({"width": WIDTH, "height": TALL})

    async def form(self, name: str, run: Handle) -> None:
        """Take the form that repairs a run, filled in wrongly and refused."""
        await self._ui.open(run, "user-metadata")
        form = await self._ui.update_form("retry_node", {"node": "page7"})
        await form.get_by_role("button", name="Submit").click()
        await form.get_by_role("alert").wait_for()
        await self._take(name, form)

    async def _take(self, name: str, part: Locator, end: float = TALLEST) -> None:
        """Take a part of the page, at most down to its pixel `end`."""
        await self._ui.page.wait_for_timeout(300)  # what moves has come to rest
        file = FOLDER / f"{name}-{self._scheme}.png"
        taken = Image.open(BytesIO(await part.screenshot(animations="disabled"))).convert("RGB")
        picture = trimmed(taken.crop((0, 0, taken.width, min(taken.height, round(end * SCALE)))))
        picture = picture.quantize(COLOURS, dither=Image.Dither.NONE)
        picture.save(file, optimize=True)
        size = file.stat().st_size
        print(f"{file.name}: {picture.width} x {picture.height}, {size:,} bytes")
        if size > MOST_BYTES:
            self.faults.append(f"{file.name} has {size:,} bytes, which is more than {MOST_BYTES:,}")


def trimmed(picture: Image.Image) -> Image.Image:
    """Return a picture without the empty room around it."""
    empty = Image.new("RGB", picture.size, picture.getpixel((0, 0)))
    left, top, right, bottom = ImageChops.difference(picture, empty).getbbox() or (0, 0, *picture.size)
    left, top = max(left - MARGIN, 0), max(top - MARGIN, 0)
    right, bottom = min(right + MARGIN, picture.width), min(bottom + MARGIN, picture.height)
    return picture.crop((left, top, right, bottom))


async def photograph(camera: Camera, asked: list[Handle], runs: Runs, asking: Handle, program: Handle) -> None:
    """Take every picture in one colour scheme."""
    await camera.listing("list")
    await camera.timeline("timeline", asked[-1])
    await camera.board("board", asked[-1], whole=False)
    for size in SIZES:
        await camera.board(f"board-{size}", runs[size, "running"])
    await camera.timeline("timeline-50", runs[50, "done"])
    await camera.board("blocked", runs[5, "blocked"])
    await camera.board("failed", runs[5, "failed"])
    await camera.form("update", runs[5, "blocked"])
    await camera.board("asking", asking)
    await camera.board("program", program)


async def answered(stack: WebStack) -> list[Handle]:
    """Ask the sample documents some questions and return the runs when they are done."""
    runs = [
        await stack.start(slug(question), summary=markdown_summary(question), goal=question) for question in QUESTIONS
    ]
    for run in runs:
        assert (await run.result())["status"] == "done"
    return runs


async def main() -> int:
    """Take all pictures and return the exit code."""
    FOLDER.mkdir(exist_ok=True)
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with browsing() as browser, web_stack(Path(folder)) as stack:
            runs, asked = await start_sample_runs(stack), await answered(stack)
            asking, program = await start_asking_run(stack), await start_program(stack)
            for scheme in SCHEMES:
                context = await window(browser, scheme=scheme, scale=SCALE, height=TALL)
                camera = Camera(await WebUI.opened(context, stack.ui), scheme)
                await photograph(camera, asked, runs, asking, program)
                faults += camera.faults
                await context.close()
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    logging.disable()  # nodes fail on purpose
    try:
        sys.exit(asyncio.run(main()))
    except NoChromium as reason:
        sys.exit(f"make pictures: {reason}")
