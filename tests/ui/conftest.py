"""What browser tests share: one stage, one browser, and a run of every size in every state."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from doubles.chromium import NoChromium, browsing, window
from doubles.stage import Stage, staged
from doubles.surveys import Runs, all_surveys
from doubles.webui import WebUI
from playwright.async_api import BrowserContext


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A server with its UI and workers."""
    async with staged(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def context() -> AsyncIterator[BrowserContext]:
    """One window of one browser: the UI's scripts are loaded once. Without a browser, tests are skipped."""
    try:
        async with browsing() as browser:
            yield await window(browser)
    except NoChromium as reason:
        pytest.skip(str(reason))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runs(stage: Stage) -> Runs:
    """A run of every size in every state, all of them there."""
    return await all_surveys(stage)


@pytest_asyncio.fixture(loop_scope="session")
async def ui(context: BrowserContext, stage: Stage) -> AsyncIterator[WebUI]:
    """A fresh tab. At the end of the test nothing may have been executed or fetched that came out of a run."""
    ui = await WebUI.opened(context, stage.ui)
    yield ui
    await ui.page.close()
    assert ui.alarms == []
