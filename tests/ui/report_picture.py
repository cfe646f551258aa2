"""Takes the picture of `docs/report.html`, the page that `sennit report` has written of the demo: `make pictures`."""

import asyncio
import sys
from io import BytesIO
from pathlib import Path

from doubles.chromium import NoChromium, browsing, window
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"
COLOURS = 220
MOST_BYTES = 200_000


async def main() -> int:
    """Take the page from its top to the end of its timeline, in both schemes, and return the exit code."""
    is_large = False
    async with browsing() as browser:
        for scheme in ("light", "dark"):
            context = await window(browser, scheme="dark" if scheme == "dark" else "light", scale=1.25)
            page = await context.new_page()
            await page.goto((DOCS / "report.html").as_uri())
            end = await page.locator("#timeline").evaluate("part => part.getBoundingClientRect().bottom + scrollY")
            clip = {"x": 90.0, "y": 0.0, "width": 1260.0, "height": end + 24}
            taken = await page.screenshot(full_page=True, clip=clip, animations="disabled")  # type: ignore[arg-type]
            picture = Image.open(BytesIO(taken)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            file = DOCS / "pictures" / f"report-{scheme}.png"
            picture.save(file, optimize=True)
            print(f"{file.name}: {picture.width} x {picture.height}, {file.stat().st_size:,} bytes")
            is_large |= file.stat().st_size > MOST_BYTES
            await context.close()
    return 1 if is_large else 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except NoChromium as reason:
        sys.exit(f"make pictures: {reason}")
