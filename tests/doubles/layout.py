"""Whether a drawing can be read: its texts measured by the browser, against its frame, their boxes and each other."""

import asyncio

from playwright.async_api import FrameLocator

PAUSE = 0.2
SMALLEST = 7.0
"""Pixels a text must be high, on a board that is as wide as a laptop shows it."""
_MEASURE = """(page, smallest) => {
  const slack = 1.5, flaws = [], said = text => JSON.stringify(text.textContent.trim().slice(0, 40));
  const inside = (a, b) => a.left >= b.left - slack && a.right <= b.right + slack
                        && a.top >= b.top - slack && a.bottom <= b.bottom + slack;
  const holds = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const shared = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack
                        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
  if (page.scrollWidth > page.clientWidth + slack)
    flaws.push(`the board is ${page.scrollWidth} pixels wide and ${page.clientWidth} are shown`);
  for (const svg of page.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.right > page.clientWidth + slack) flaws.push(`the drawing is cut at ${page.clientWidth} pixels`);
    const boxes = [...svg.querySelectorAll("rect, circle, ellipse, polygon")].map(box => box.getBoundingClientRect())
      .filter(box => box.width * box.height < 0.5 * frame.width * frame.height && box.height > smallest);
    const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent.trim())
      .map(text => ({text, box: text.getBoundingClientRect()}));
    texts.forEach(({text, box}, index) => {
      if (!inside(box, frame)) flaws.push(`${said(text)} is cut by the edge of the drawing`);
      if (box.height < smallest) flaws.push(`${said(text)} is only ${box.height.toFixed(1)} pixels high`);
      const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
      const home = boxes.filter(other => holds(other, x, y)).sort((a, b) => a.width * a.height - b.width * b.height)[0];
      if (home && !inside(box, home)) flaws.push(`${said(text)} does not fit into its box`);
      for (const other of boxes)
        if (other !== home && !holds(other, x, y) && shared(box, other))
          flaws.push(`${said(text)} lies over another box`);
      for (const other of texts.slice(index + 1))
        if (shared(box, other.box)) flaws.push(`${said(text)} and ${said(other.text)} overlap`);
    });
  }
  return flaws;
}"""


async def flaws(board: FrameLocator, *, smallest: float = SMALLEST, patience: float = 10.0) -> list[str]:
    """Return a sentence for every text of the board's drawings that is cut, overlaps another or is too small.

    A page that is still being laid out is measured again, for `patience` seconds at most.
    """
    for left in reversed(range(int(patience / PAUSE) + 1)):
        found: list[str] = await board.locator("html").evaluate(_MEASURE, smallest)
        if not found or not left:
            break
        await asyncio.sleep(PAUSE)
    return found
