"""What an exception of a tool's own code says of where it came from: in its sentence, and in Temporal's stack trace."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import default

from sennit.activities.nodes.error_mapping import failure, message_of
from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import ToolArgumentError
from sennit.workflows.messages.converter import DATA_CONVERTER

SOURCE = '''\
import json
from pydantic import BaseModel
from sennit.activities.toolbox import tool
from sennit.activities.toolbox.registry import Registry

OWN = Registry()

class Shop(BaseModel):
    name: str


def _read(text):
    return json.loads(text)


@tool(effect="read", registry=OWN)
def price(args: Shop) -> str:
    """Look up a price."""
    key = "hunter2222"
    return _read(args.name)["price"]


@tool(effect="read", registry=OWN)
async def stock(args: Shop) -> str:
    """Look up the stock."""
    return {}[args.name]
'''


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ModuleType]:
    """The module of somebody's own tools."""
    path = tmp_path / "my_shop.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("my_shop", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["my_shop"] = module
    sys.path.insert(0, str(tmp_path))
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(tmp_path))
    del sys.modules["my_shop"]


async def raised(module: ModuleType, name: str, argument: str, tmp_path: Path, *, isolated: bool = False) -> Exception:
    context = ToolContext(tmp_path, tmp_path, "run", "n1", 1, 1, "key", lambda _line: None)
    with pytest.raises(Exception) as caught:  # noqa: PT011  any tool's own error
        await module.OWN.get(name).call({"name": argument}, context, isolated=isolated)
    return caught.value


def stack_in_temporal(error: Exception) -> str:
    encoded = Failure()
    DATA_CONVERTER.failure_converter.to_failure(failure(error), default().payload_converter, encoded)
    return encoded.stack_trace


@pytest.mark.parametrize("isolated", [False, True])
async def test_an_exception_says_the_last_line_of_the_tools_own_code(
    shop: ModuleType, tmp_path: Path, isolated: bool
) -> None:
    error = await raised(shop, "price", "no json", tmp_path, isolated=isolated)
    assert type(error) is json.JSONDecodeError
    assert message_of(error) == "Expecting value: line 1 column 1 (char 0) (my_shop.py:13, in _read)"
    assert message_of(await raised(shop, "stock", "x", tmp_path, isolated=isolated)) == "'x' (my_shop.py:26, in stock)"


@pytest.mark.parametrize("isolated", [False, True])
async def test_the_stack_trace_begins_with_the_tool_and_holds_no_frame_of_sennit_and_no_values(
    shop: ModuleType, tmp_path: Path, isolated: bool
) -> None:
    stack = stack_in_temporal(await raised(shop, "price", "no json", tmp_path, isolated=isolated))
    lines = [line.strip() for line in stack.splitlines() if line.startswith("  File")]
    assert lines[0] == f'File "{tmp_path / "my_shop.py"}", line 20, in price'
    assert lines[1] == f'File "{tmp_path / "my_shop.py"}", line 13, in _read'
    assert any("json" in line for line in lines[2:])
    assert "activities" not in stack
    assert "hunter" not in stack


async def test_an_error_with_a_sentence_of_its_own_and_ours_stay_as_they_are(shop: ModuleType, tmp_path: Path) -> None:
    error = await raised(shop, "price", "", tmp_path)
    assert "my_shop" in message_of(error)
    assert message_of(ToolArgumentError("is empty", tool="t", field="f")).endswith("is empty")
    assert stack_in_temporal(ToolArgumentError("is empty", tool="t", field="f")) == ""
