"""The catalogue from a child process."""

import sys

import pytest

from sennit.starter.client.errors import Refused
from sennit.starter.plans.catalogue import read_catalogue


def child(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def test_the_childs_json_is_the_catalogue() -> None:
    catalogue = await read_catalogue(
        child('print(\'{"tools": [{"name": "a"}], "roles": ["x"], "models": ["offline"]}\')')
    )
    assert catalogue.tools == [{"name": "a"}]
    assert catalogue.models == ("offline",)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('sennit worker: no module \\x1b[31mmytools')", "no module mytools"),
        ("import sys; sys.exit(3)", "it ended with exit status 3"),
        ("print('hello')", "wrote to standard output"),
        ("print('[]')", "wrote to standard output"),
    ],
)
async def test_what_is_wrong_with_the_tools_is_reported(code: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        await read_catalogue(child(code))


async def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sennit.starter.plans.catalogue.PATIENCE", 0.2)
    with pytest.raises(Refused, match="did not come within"):
        await read_catalogue(child("import time; time.sleep(60)"))
