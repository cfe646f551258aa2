"""`sennit output` on a real run: what it writes where, and what it exits with."""

import io
import json
import os
from argparse import Namespace
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call
from temporalio.client import Client

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands import output
from sennit.starter.terminal.console import Terminal

pytestmark = pytest.mark.timeout(100)
ODD = "two\nlines \x1b[31mred"


class Screen(io.StringIO):
    """A terminal to write to."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
async def run(start: Start, client: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that is over."""

    async def connect(*_: Any) -> Sennit:
        return Sennit(client, local_server(client.service_client.config.target_host, None))

    monkeypatch.setattr(output, "connect", connect)
    nodes = [call("odd", args={"value": ODD}), call("big", "make", args={"bytes": 70_000})]
    nodes += [call("hidden", args={"value": "[redacted]"})]
    handle = await start(plan={"nodes": nodes, "answer": {"said": "$odd.value", "n": "$hidden"}})
    await handle.result()
    return handle.id


async def written(run: str, node: str = "", *, out: io.StringIO | None = None, **given: Any) -> tuple[str, str]:
    """Return what the command writes to standard output and standard error."""
    terminal = Terminal(output=given.pop("form", "text"), out=out or io.StringIO(), err=io.StringIO())
    args = Namespace(**{"run": run, "node": node, "path": "", "raw": False, **given})
    assert await output.run(args, terminal) is Exit.ANSWER
    assert isinstance(terminal.out, io.StringIO)
    assert isinstance(terminal.err, io.StringIO)
    return terminal.out.getvalue(), terminal.err.getvalue()


async def test_texts_are_cleaned_unless_they_are_wanted_raw(run: str) -> None:
    assert await written(run, "odd", path="value") == ("two\nlines red\n", "")
    assert await written(run, "odd", path="value", raw=True) == (ODD, "")
    assert await written(run, "odd", path="value", form="json") == (f"{json.dumps(ODD)}\n", "")
    assert (await written(run, "odd", raw=True))[0] == json.dumps({"value": ODD}, separators=(",", ":")).replace(
        "\\u001b", "\\u001b"
    )


async def test_the_answer_comes_without_a_node_and_its_words_are_not_taken_for_a_mask(run: str) -> None:
    out, err = await written(run)
    assert json.loads(out) == {"said": ODD, "n": {"value": "[redacted]"}}
    assert err == "", "nobody has masked it: the tool has said so"


async def test_what_a_terminal_cannot_show_names_the_command_that_keeps_it(run: str) -> None:
    with pytest.raises(Refused) as refused:
        await written(run, "big", out=Screen())
    kept = f"sennit output {run} big --raw > FILE"
    assert str(refused.value) == (
        f"it has 70,016 bytes, too many for a terminal; write it to a file: {kept}, or choose a part of it with --path"
    )
    with pytest.raises(Refused, match=r"^--raw: it may hold what a terminal obeys; write it to a file: sennit output"):
        await written(run, "odd", raw=True, out=Screen())
    out, _ = await written(run, "big", raw=True, path="text")
    assert out == "x" * 70_000
    assert os.linesep not in out
