"""A real browser for tests: Debian's Chromium, driven by Playwright, which gets its path and downloads none."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest
from playwright.async_api import Browser, BrowserContext, async_playwright, expect

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]
"""Marks of tests that share one browser and one server: one event loop."""
WIDTH, HEIGHT = 1440, 900
PATIENCE = 20_000  # milliseconds until something must be there, on a busy machine
Scheme = Literal["light", "dark"]


class NoChromium(Exception):
    """There is no browser on this machine; the text says what helps."""


def find_chromium() -> str:
    """Return the browser to run: what SENNIT_CHROMIUM names, else the first one on PATH. Raises NoChromium."""
    named = os.environ.get("SENNIT_CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    missing = f"SENNIT_CHROMIUM={named} is no program" if named else f"none of {', '.join(NAMES)} is on PATH"
    raise NoChromium(f"no Chromium: {missing}; install it (apt install chromium) or name one by SENNIT_CHROMIUM")


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Run a browser until the block ends. Raises NoChromium."""
    path = find_chromium()
    async with async_playwright() as playwright:
        sandbox = os.geteuid() != 0  # Chromium refuses to build its sandbox for root
        browser = await playwright.chromium.launch(
            executable_path=path,
            chromium_sandbox=sandbox,
            args=["--disable-gpu"],  # else a processor plays its part
        )
        try:
            yield browser
        finally:
            await browser.close()


async def window(
    browser: Browser, *, scheme: Scheme = "light", scale: float = 1, height: int = HEIGHT
) -> BrowserContext:
    """Open a window as wide as a laptop's, with a memory of its own, in English and UTC."""
    context = await browser.new_context(
        viewport={"width": WIDTH, "height": height},
        color_scheme=scheme,
        device_scale_factor=scale,
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    return context
