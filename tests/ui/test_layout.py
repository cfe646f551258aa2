"""The measuring of drawings itself: it finds what is wrong, and only that."""

from doubles.chromium import BROWSER
from doubles.layout import flaws
from playwright.async_api import BrowserContext

pytestmark = BROWSER
GOOD = """<rect x="10" y="10" width="80" height="24"/><text x="14" y="26">one</text>
<rect x="110" y="10" width="80" height="24"/><text x="114" y="26">two</text>"""


DRAWINGS = {
    GOOD: "",
    GOOD.replace("one", "far too long"): '"far too long" does not fit into its box',
    GOOD.replace('x="14"', 'x="86"'): '"one" lies over another box',
    '<text x="4" y="20">here</text><text x="20" y="22">there</text>': '"here" and "there" overlap',
    '<text x="180" y="20">gone</text>': '"gone" is cut by the edge of the drawing',
    '<text x="10" y="20" font-size="4">tiny</text>': '"tiny" is only',
}


async def test_a_drawing_is_measured(context: BrowserContext) -> None:
    page = await context.new_page()
    for drawing, wrong in DRAWINGS.items():
        picture = f"<svg width='200' height='40' font-family='monospace' font-size='14'>{drawing}</svg>"
        await page.set_content("<iframe width='300'></iframe>")
        await page.locator("iframe").evaluate("(frame, text) => { frame.srcdoc = text }", picture)
        board = page.frame_locator("iframe")
        await board.locator("svg").wait_for()
        found = await flaws(board, patience=0)
        assert found[0].startswith(wrong) if wrong else found == []
    await page.close()
