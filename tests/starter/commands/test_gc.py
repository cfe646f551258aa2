"""`sennit gc`: whose store it works on."""

import argparse
from pathlib import Path
from typing import cast

import pytest

from sennit.starter.client.errors import Refused
from sennit.starter.commands import worker
from sennit.starter.dev.state import StateDir
from sennit.starter.terminal.console import Terminal


async def test_the_store_of_the_local_stack_is_not_collected_in_place_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A timer without TEMPORAL_ADDRESS would report success every day, and the other store would grow for ever."""
    monkeypatch.setenv("SENNIT_STATE", str(tmp_path))
    monkeypatch.setenv("SENNIT_ARTIFACTS", "s3://bucket/runs")
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    state = StateDir.find()
    state.prepare()
    state.database.touch()

    async def join(*_: object) -> None:
        pytest.fail("the store of the local stack would be collected")

    monkeypatch.setattr(worker, "join_local_stack", join)
    args = argparse.Namespace(command="gc", address=None, namespace=None, older_than=1.0, dry_run=False)
    with pytest.raises(Refused, match="SENNIT_ARTIFACTS=s3://bucket/runs: the local stack keeps artifacts in"):
        await worker.run(args, cast("Terminal", None))
