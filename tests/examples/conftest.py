"""The example plans as a user meets them."""

from collections.abc import Iterator

import pytest
from doubles.example_user import ExampleUser, example_user

from sennit.starter.dev.server import DevServer


@pytest.fixture(scope="module")
def user(dev_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleUser]:
    """Somebody with a terminal in a fresh clone."""
    with example_user(dev_server.address, tmp_path_factory.mktemp("user")) as found:
        yield found
