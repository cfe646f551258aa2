"""What hostile clients of `sennit serve --mcp --http` get: a real server process, and requests written by hand."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client as Temporal

pytest.importorskip("mcp", reason="needs the extra mcp")
import httpx2
from doubles.callers import ANN, BOB
from doubles.runs import call
from doubles.serve_process import http_client, http_server
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, TextContent

from sennit.__main__ import main
from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Exit

WAITS = {"nodes": [{"id": "choice", "kind": "gate", "question": "Which?"}], "answer": "$choice"}
VALUE = {"goal": "the secret of ann", "nodes": [call("value", args={"value": 7})], "answer": "$value.value"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def url(server_address: str, tokens: Path, tmp_path: Path) -> AsyncIterator[str]:
    """A server on loopback that wants tokens."""
    async with http_server(tmp_path, "--address", server_address, "--http", "0", "--tokens", str(tokens)) as found:
        yield found


async def post(url: str, message: Any, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await http.post(url, content=json.dumps(message), headers={**ACCEPT, **given})


async def said(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Return whether a tool has failed, and its text."""
    found = await client.call_tool(tool, arguments)
    return bool(found.is_error), "".join(block.text for block in found.content if isinstance(block, TextContent))


@pytest.mark.parametrize("message", [HELLO, LIST])
async def test_a_request_without_a_token_of_a_caller_gets_nothing(url: str, message: Any) -> None:
    for header in ({}, {"authorization": "Bearer x"}, {"authorization": f"Basic {ANN}"}, {"authorization": ANN}):
        response = await post(url, message, **header)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer ")
        assert "sennit" not in response.text
    assert (await post(url, HELLO, authorization=f"Bearer {ANN}")).status_code == 200


async def test_a_web_page_gets_nothing_even_with_a_token_or_a_name_of_this_address(url: str) -> None:
    for header in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1.evil.example:80"},
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:80"},
    ):
        response = await post(url, HELLO, authorization=f"Bearer {ANN}", **header)
        assert response.status_code in (403, 421), header
        assert "access-control-allow-origin" not in response.headers
    port = url.rpartition(":")[2].partition("/")[0]
    near = await post(url, HELLO, authorization=f"Bearer {ANN}", origin=f"http://localhost:{port}")
    assert near.status_code == 200


async def test_a_body_of_ten_megabytes_is_refused_before_it_is_read(url: str) -> None:
    big = {**LIST, "params": {"_meta": {"x": "y" * 10_000_000}}}
    assert (await post(url, big, authorization=f"Bearer {ANN}")).status_code == 413
    deep = "[" * 100_000 + "]" * 100_000
    async with httpx2.AsyncClient(trust_env=False) as http:
        response = await http.post(url, content=deep, headers={**ACCEPT, "authorization": f"Bearer {ANN}"})
    assert response.status_code == 400
    assert (await post(url, HELLO, authorization=f"Bearer {ANN}")).status_code == 200


@pytest.mark.parametrize("authorization", [f"Bearer {ANN}", ""])
async def test_a_thousand_requests_at_once_leave_a_server_that_serves(url: str, authorization: str) -> None:
    limits = httpx2.Limits(max_connections=1_000)
    async with httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits) as http:
        headers = {**ACCEPT, "authorization": authorization}
        sent = [http.post(url, content=json.dumps(HELLO), headers=headers) for _ in range(1_000)]
        ends = await asyncio.gather(*sent, return_exceptions=True)
    codes = Counter(end.status_code if isinstance(end, httpx2.Response) else type(end).__name__ for end in ends)
    assert set(codes) <= {200 if authorization else 401, 503}, codes
    assert codes[200 if authorization else 401] > 0
    assert codes[200] <= 200  # as many as there may be sessions
    async with http_client(url, ANN) as agent:
        assert len((await agent.list_tools()).tools) == 8


async def test_connections_that_ask_for_nothing_keep_nobody_out(url: str) -> None:
    port = int(url.rpartition(":")[2].partition("/")[0])
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
    for _, writer in idle[:150]:
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n")
    async with http_client(url, ANN) as agent:
        assert len((await agent.list_tools()).tools) == 8
    for _, writer in idle:
        writer.close()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_somebody_elses_run_is_not_there(
    mode: str, url: str, client: Temporal, workers: None, server_address: str
) -> None:
    """Nor is one that was started without the server. It is refused in the words for a run that does not exist."""
    own = await Sennit(client).start(plan=WAITS, id=f"of-the-operator-{mode}")
    async with http_client(url, ANN, mode=mode) as ann, http_client(url, BOB, mode=mode) as bob:
        _, text = await said(ann, "run_plan", plan=VALUE, id=f"of-ann-{mode}")
        name = json.loads(text)["run"]
        assert json.loads((await said(ann, "status", run=name))[1])["answer"] == 7
        for other in (name, own.id, "nobody"):
            where = f"there is no run {other} in namespace default at {server_address}"
            for tool in ("status", "output", "retry", "cancel"):
                failed, text = await said(bob, tool, run=other)
                assert (failed, where in text) == (True, True), text
            failed, text = await said(bob, "ask", goal="go on", continues=other)
            assert (failed, where in text) == (True, True), text
            with pytest.raises(MCPError, match=where) as missing:
                await bob.read_resource(f"sennit://runs/{other}/report")
            assert missing.value.code == INVALID_PARAMS
        assert json.loads((await said(bob, "list"))[1]) == {"runs": [], "more": 0}

        # An id that is taken says nothing about the run that has it.
        for other in (name, own.id):
            failed, text = await said(bob, "run_plan", plan=VALUE, id=other)
            assert failed
            assert text.endswith(f"the id {other} is taken; choose another one")
    await own.cancel()


async def test_a_session_serves_only_the_token_that_has_opened_it(url: str) -> None:
    opened = await post(url, HELLO, authorization=f"Bearer {ANN}")
    session = opened.headers["mcp-session-id"]
    mine = await post(url, LIST, authorization=f"Bearer {ANN}", mcp_session_id=session)
    assert mine.status_code == 200
    for header in ({"authorization": f"Bearer {BOB}"}, {}):
        response = await post(url, LIST, mcp_session_id=session, **header)
        assert response.status_code in (401, 404)


async def test_with_all_runs_a_caller_reaches_the_others(
    server_address: str, client: Temporal, workers: None, tmp_path: Path
) -> None:
    own = await Sennit(client).start(plan=VALUE, id="reached-by-all")
    await own.report()
    flags = ("--address", server_address, "--http", "0", "--all-runs")
    async with http_server(tmp_path, *flags) as url, http_client(url) as agent:
        assert json.loads((await said(agent, "status", run=own.id))[1])["answer"] == 7
        assert own.id in (await said(agent, "list", limit=100))[1]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--http", "x"], "sennit: --http x: write [HOST:]PORT, such as 8765"),
        (["--http", "0.0.0.0:0"], "sennit: --http 0.0.0.0:0: elsewhere than on loopback clients need a token"),
        (["--http", "0.0.0.0:0", "--tokens", "good"], "sennit: --http 0.0.0.0:0: name the host"),
        (["--tokens", "good"], "sennit: --tokens and --name are for --http"),
        (["--http", "0", "--tokens", "nowhere"], "sennit: --tokens nowhere: [Errno 2]"),
        (["--http", "0", "--tokens", "open"], "sennit: --tokens open: every user of this machine may read it"),
        (["--http", "0", "--tokens", "short"], "sennit: --tokens short: the token of ann is not a text of at least 24"),
        (["--http", "0", "--tokens", "same"], "sennit: --tokens same: two callers have the token of bob"),
        (["--http", "0", "--tokens", "none"], "sennit: --tokens none: it has no token"),
        (["--http", "0", "--tokens", "named"], "sennit: --tokens named: a caller has 1 to 32 of"),
        (["--docs", "nowhere"], "sennit: --docs nowhere: there is no such folder"),
    ],
)
def test_what_nobody_may_serve_is_refused_before_it_listens(
    argv: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {
        "good": f'ann = "{ANN}"\n',
        "open": f'ann = "{ANN}"\n',
        "short": 'ann = "secret"\n',
        "same": f'ann = "{ANN}"\nbob = "{ANN}"\n',
        "none": "",
        "named": f'"Ann Smith" = "{ANN}"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644 if name == "open" else 0o600)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENNIT_STATE", str(tmp_path / "state"))
    assert main(["serve", "--mcp", *argv]) == Exit.USAGE
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.out == ""
