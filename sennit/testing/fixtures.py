"""Fixtures for pytest: a scripted model server, and a local stack that uses it.

Put this line into the `conftest.py` at the top of your tests:

    pytest_plugins = ["sennit.testing.fixtures"]
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from sennit.testing.models import ModelServer, model_server


@pytest.fixture
def scripted_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server that answers by its `rules`, which a test adds; `asked` has what it was asked.
    The models of every role are set to it.
    """
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    serving = model_server()
    server = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("SENNIT_MODEL", f"openai:{server.models[0]}")
    yield server
    asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def local_stack(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    scripted_model: ModelServer,
) -> Iterator[Path]:
    """A local stack of this test alone, whose state is in the folder given: `Sennit.local()` starts
    it, with the scripted model. It is stopped at the end.
    """
    del scripted_model
    state = tmp_path_factory.mktemp("sennit")
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SENNIT_STATE", str(state))
    monkeypatch.setenv("SENNIT_UI", "off")
    yield state
    subprocess.run(
        [sys.executable, "-m", "sennit", "dev", "--stop"], check=True, capture_output=True
    )
