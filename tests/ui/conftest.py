"""What browser tests share: one stack, one browser, and sample runs."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import pytest_asyncio
from doubles.chromium import NoChromium, browsing, window
from doubles.newer_ui import newer_ui
from doubles.sample_runs import STATES, Runs, start_sample_runs
from doubles.web_stack import WebStack, web_stack
from doubles.webui import WebUI
from playwright.async_api import BrowserContext


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WebStack]:
    """A server with its UI and workers; with SENNIT_TEST_UI=newer, a newer UI than the server's own."""
    async with AsyncExitStack() as parts:
        stack = await parts.enter_async_context(web_stack(tmp_path_factory.mktemp("stack")))
        if os.environ.get("SENNIT_TEST_UI") == "newer":
            server = stack.client.service_client.config.target_host
            address = await parts.enter_async_context(newer_ui(server, tmp_path_factory.mktemp("ui")))
            stack = replace(stack, ui=address)
        yield stack


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def context() -> AsyncIterator[BrowserContext]:
    """One window of one browser: the UI's scripts are loaded once. Without a browser, tests are skipped."""
    try:
        async with browsing() as browser:
            yield await window(browser)
    except NoChromium as reason:
        pytest.skip(str(reason))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runs(stack: WebStack) -> Runs:
    """A run of every state, and one of each larger size, all of them there."""
    return await start_sample_runs(stack, [*((5, state) for state in STATES), (50, "running"), (500, "blocked")])


@pytest_asyncio.fixture(loop_scope="session")
async def ui(context: BrowserContext, stack: WebStack) -> AsyncIterator[WebUI]:
    """A fresh tab. At the end of the test nothing may have been executed or fetched that came out of a run."""
    ui = await WebUI.opened(context, stack.ui)
    yield ui
    await ui.page.close()
    assert ui.alarms == []
