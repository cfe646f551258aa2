"""The example plans as a user meets them."""

from collections.abc import Iterator

import pytest
from doubles.newcomer import Newcomer, newcomer

from starter.dev.server import DevServer


@pytest.fixture(scope="module")
def user(dev_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """Somebody with a terminal in a fresh clone."""
    with newcomer(dev_server.address, tmp_path_factory.mktemp("user")) as found:
        yield found
