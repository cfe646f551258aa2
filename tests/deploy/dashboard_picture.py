"""Draws the panels of the Grafana dashboard from the data of a small load, as docs/pictures/dashboard.png.

Part of `make pictures`. Fails if a panel has no data.
"""

import asyncio
import io
import json
import math
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from doubles.chromium import browsing, window
from doubles.monitored import SHIPPED, Monitored, available, monitored
from PIL import Image

PICTURE = SHIPPED.parents[1] / "docs" / "pictures" / "dashboard.png"
WAVES = 12
WIDTH, HEIGHT, LEFT, BELOW = 440, 150, 52, 18
COLOURS = ("#3366cc", "#c2410c", "#15803d", "#7e22ce", "#eab308", "#0e7490", "#be185d", "#4d7c0f")
STYLE = """
body { margin: 0; padding: 12px; background: #f4f5f7; font: 12px sans-serif; color: #1f2328; width: 1390px }
h2 { font-size: 14px; margin: 10px 2px 6px } h3 { font-size: 12px; margin: 0 0 4px }
.row { display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px }
.panel { background: #fff; border: 1px solid #d8dce2; border-radius: 3px; padding: 8px }
.key { display: inline-block; margin-right: 10px } .key i { display: inline-block; width: 10px; height: 3px;
margin-right: 4px; vertical-align: middle } text { font-size: 10px; fill: #57606a }
"""


def amount(value: float, unit: str) -> str:
    """Return a number as an axis shows it."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "currencyUSD":
        return f"${value:.2f}"
    return f"{value:.3g}{' ' + unit if unit in ('s', 'ms') else ''}"


def drawing(lines: list[list[tuple[float, float]]], start: float, end: float, unit: str) -> str:
    """Return the lines as SVG, with an axis for values and one for seconds since the start."""
    most = max((value for line in lines for _, value in line), default=0.0) or 1.0
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BELOW - share * (HEIGHT - BELOW - 10)
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH}" stroke="#e3e6ea"/>')
        label = amount(share * most, unit)
        parts.append(f'<text x="{LEFT - 6}" y="{y + 3}" text-anchor="end">{label}</text>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        seconds, x = share * (end - start), LEFT + share * (WIDTH - LEFT)
        parts.append(f'<text x="{x}" y="{HEIGHT - 3}" text-anchor="{anchor}">{seconds:.0f} s</text>')
    for number, line in enumerate(lines):
        points = [
            f"{LEFT + (at - start) / (end - start) * (WIDTH - LEFT):.1f},"
            f"{HEIGHT - BELOW - value / most * (HEIGHT - BELOW - 10):.1f}"
            for at, value in line
        ]
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
    return f'<svg width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'


async def panel_of(panel: dict[str, Any], seen: Monitored) -> str:
    """Return a panel as HTML. Raises ValueError if its queries return nothing."""
    names: list[str] = []
    lines: list[list[tuple[float, float]]] = []
    for target in panel["targets"]:
        for series in await seen.series(target["expr"]):
            points = [(float(at), float(value)) for at, value in series["values"] if math.isfinite(float(value))]
            name = target["legendFormat"]
            for label, value in series["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            if points:
                names.append(name)
                lines.append(points)
    if not lines:
        raise ValueError(f"the panel {panel['title']!r} has no data")
    end = max(at for line in lines for at, _ in line)
    keys = "".join(
        f'<span class="key"><i style="background: {COLOURS[number % len(COLOURS)]}"></i>{escape(name)}</span>'
        for number, name in enumerate(names)
    )
    chart = drawing(lines, seen.began, max(end, seen.began + 1), panel["fieldConfig"]["defaults"]["unit"])
    return f'<div class="panel"><h3>{escape(panel["title"])}</h3>{chart}<div>{keys}</div></div>'


async def page_of(seen: Monitored) -> str:
    """Return the whole dashboard as HTML."""
    parts: list[str] = []
    for panel in json.loads((SHIPPED / "dashboard.json").read_text())["panels"]:
        if panel["type"] == "row":
            parts.append(f'{"</div>" if parts else ""}<h2>{escape(panel["title"])}</h2><div class="row">')
        else:
            parts.append(await panel_of(panel, seen))
    return f"<!doctype html><style>{STYLE}</style><body>{''.join(parts)}</div>"


async def main() -> None:
    """Make the load, and take the picture."""
    if not available():
        sys.exit("there is no prometheus (Debian: apt install prometheus): the dashboard is not drawn")
    with tempfile.TemporaryDirectory() as folder:
        async with monitored(Path(folder), waves=WAVES) as seen:
            html = await page_of(seen)
    async with browsing() as browser:
        page = await (await window(browser, scale=1.3)).new_page()
        await page.set_content(html)
        taken = await page.locator("body").screenshot()
    Image.open(io.BytesIO(taken)).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    asyncio.run(main())
