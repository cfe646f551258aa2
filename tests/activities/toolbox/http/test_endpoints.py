"""Declared HTTP endpoints, against a real server on the loopback."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sennit.activities.http.download import download
from sennit.activities.nodes.error_mapping import message_of
from sennit.activities.toolbox import Tool, ToolArgumentError, ToolContext, ToolError, ToolSetupError
from sennit.activities.toolbox.errors import (
    AddressRefused,
    ContentRefused,
    FetchFailed,
    HttpStatusError,
    UnknownOutcome,
)
from sennit.activities.toolbox.http.declarations import http_tools

if TYPE_CHECKING:
    from .conftest import Request, Web
else:
    Request = Web = Any

SECRET = "s3cret-77aa"
TEXT = {"type": "string"}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def declared(folder: Path, url: str, **fields: Any) -> Tool:
    """Return the one tool of a file that declares it."""
    entry = {"name": "ask", "description": "Ask.", "effect": "read", "url": url, **fields}
    (folder / "http.json").write_text(json.dumps({"tools": [entry]}))
    (tool,), _ = http_tools(folder / "http.json", {"API_TOKEN": SECRET})
    return tool


async def test_arguments_go_into_path_query_and_header(web: Web, tmp_path: Path, context: ToolContext) -> None:
    web.page("/items/a%2Fb%20%3F/x?v=2&tag=1&tag=two&deep=%7B%22k%22%3A+null%7D", b'{"n": [1]}', "application/json")
    tool = declared(
        tmp_path,
        web.url("/items/{id}/x?v={v}"),
        arguments=schema("id", "v", id=TEXT, v={"type": "integer"}, tag={"type": "array"}, deep={"type": "object"}),
        headers={"Authorization": "Bearer ${API_TOKEN}"},
    )
    given = {"id": "a/b ?", "v": 2, "tag": [1, "two"], "deep": {"k": None}}
    assert await tool.call(given, context) == {
        "status": 200, "content_type": "application/json", "data": {"n": [1]}, "truncated": False, "location": ""
    }  # fmt: skip
    (request,) = web.requests
    assert (request.method, request.headers["authorization"]) == ("GET", f"Bearer {SECRET}")
    assert (tool.schema["additionalProperties"], tool.effect, tool.idempotent) == (False, "read", False)


async def test_a_post_has_a_json_body_and_an_idempotency_key(web: Web, tmp_path: Path, context: ToolContext) -> None:
    web.page("/items/7", b"made", "text/plain", "201 Created")
    tool = declared(
        tmp_path,
        web.url("/items/{id}"),
        method="POST",
        effect="write",
        arguments=schema("id", id={"type": "integer"}, name=TEXT),
        idempotency_header="Idempotency-Key",
    )
    assert (await tool.call({"id": 7, "name": "é"}, context))["data"] == "made"
    (request,) = web.requests
    assert (request.method, json.loads(request.body)) == ("POST", {"name": "é"})
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == context.idempotency_key
    assert tool.idempotent


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": ".."}, "ask: id: '..' cannot stand in a path"),
        ({"id": ""}, "ask: id: '' cannot stand in a path"),
        ({}, "ask: "),
        ({"id": 3}, "ask: id: "),
        ({"id": "a", "other": 1}, "ask: other: "),
    ],
)
async def test_wrong_arguments_send_nothing(
    web: Web, tmp_path: Path, context: ToolContext, given: dict[str, Any], message: str
) -> None:
    tool = declared(tmp_path, web.url("/items/{id}"), arguments=schema("id", id=TEXT))
    with pytest.raises(ToolArgumentError) as wrong:
        await tool.call(given, context)
    assert str(wrong.value).startswith(message)
    assert web.requests == []


async def test_a_declared_host_is_open_to_its_endpoint_and_to_nothing_else(
    web: Web, tmp_path: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SENNIT_HTTP_ALLOW")
    tool = declared(tmp_path, web.page("/", b"{}", "application/json"))
    assert (await tool.call({}, context))["data"] == {}
    with pytest.raises(AddressRefused):
        await download(web.url("/"), 100)
    assert len(web.requests) == 1


async def test_a_metadata_service_cannot_be_declared(
    tmp_path: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", "169.254.169.254")
    with pytest.raises(AddressRefused, match="metadata service"):
        await declared(tmp_path, "http://169.254.169.254/latest").call({}, context)


async def test_a_redirect_is_an_answer_and_takes_no_credentials_along(
    web: Web, tmp_path: Path, context: ToolContext
) -> None:
    tool = declared(tmp_path, web.redirect("/a", "/b"), headers={"X-Key": "$API_TOKEN"})
    answer = await tool.call({}, context)
    assert (answer["status"], answer["location"]) == (302, "/b")
    assert [request.path for request in web.requests] == ["/a"]


async def test_a_body_is_bounded_and_hides_what_it_repeats(web: Web, tmp_path: Path, context: ToolContext) -> None:
    body = json.dumps({"you sent": SECRET, "more": "x" * 500}).encode()
    tool = declared(tmp_path, web.page("/", body, "application/json"), headers={"X-Key": "$API_TOKEN"})
    assert (await tool.call({}, context))["data"]["you sent"] == "[redacted]"
    short = declared(tmp_path, web.page("/long", b"x" * 500, "application/json"), max_bytes=100)
    answer = await short.call({}, context)
    assert (len(answer["data"]), answer["truncated"]) == (100, True)


async def test_retry_after_is_passed_on(web: Web, tmp_path: Path, context: ToolContext) -> None:
    url = web.page("/", b"", status="429 Too Many Requests", extra="Retry-After: 7\r\n")
    with pytest.raises(HttpStatusError, match=r"^ask: 429 Too Many Requests from") as limited:
        await declared(tmp_path, url).call({}, context)
    assert (limited.value.retryable, limited.value.retry_after) == (True, 7)


@pytest.mark.parametrize("safe", [True, False], ids=["known", "unknown"])
async def test_an_error_says_what_the_server_says(
    web: Web, tmp_path: Path, context: ToolContext, *, safe: bool
) -> None:
    """A model mends its arguments by it, and a person sees what became of a write."""
    wrong = {"detail": [{"loc": ["body", "limit"], "msg": "at most 100"}], "you sent": SECRET, "more": "é" * 3_000}
    body = json.dumps(wrong, ensure_ascii=False, indent=1).encode()
    status = "422 Unprocessable Entity" if safe else "500 Internal Server Error"
    url = web.page("/", body, "application/json", status=status)
    tool = declared(tmp_path, url, method="POST", effect="write", headers={"X-Key": "$API_TOKEN"})
    with pytest.raises(HttpStatusError if safe else UnknownOutcome) as failed:
        await tool.call({}, context)
    said = message_of(failed.value)
    assert said.startswith(f"ask: {status} from {url}")
    assert '"msg": "at most 100"' in said
    assert '"you sent": "[redacted]"' in said
    assert 1_800 < said.count("é") < 2_048
    assert said.endswith("é") if safe else said.endswith("whether it took effect is not known")


@pytest.mark.parametrize(
    ("body", "extra"),
    [(b"\x89PNG\0", ""), (b"", ""), (b"packed", "Content-Encoding: br\r\n")],
    ids=["binary", "empty", "encoded"],
)
async def test_an_error_without_a_text_is_its_status_alone(
    web: Web, tmp_path: Path, context: ToolContext, body: bytes, extra: str
) -> None:
    url = web.page("/", body, status="404 Not Found", extra=extra)
    with pytest.raises(HttpStatusError) as failed:
        await declared(tmp_path, url).call({}, context)
    assert str(failed.value) == f"ask: 404 Not Found from {url}"


async def test_a_secret_is_hidden_also_where_the_beginning_of_a_body_ends(
    web: Web, tmp_path: Path, context: ToolContext
) -> None:
    body = b"x" * (2_048 - len(SECRET) // 2) + SECRET.encode() + b"y" * 3_000
    tool = declared(tmp_path, web.page("/", body, status="400 Bad Request"), headers={"X-Key": "$API_TOKEN"})
    with pytest.raises(HttpStatusError) as failed:
        await tool.call({}, context)
    assert SECRET[:4] not in str(failed.value)


@pytest.mark.parametrize(
    ("status", "read", "write", "again"),
    [
        ("404 Not Found", HttpStatusError, HttpStatusError, False),
        ("429 Too Many Requests", HttpStatusError, HttpStatusError, True),
        ("503 Service Unavailable", HttpStatusError, UnknownOutcome, True),
    ],
)
async def test_a_write_that_may_have_happened_differs_from_one_that_did_not(
    web: Web,
    tmp_path: Path,
    context: ToolContext,
    status: str,
    read: type[ToolError],
    write: type[ToolError],
    again: bool,
) -> None:
    url = web.page("/", b"x", status=status, extra="Content-Encoding: br\r\n")  # a status needs no body
    for expected, fields in (
        (read, {}),
        (write, {"effect": "write", "method": "POST"}),
        (HttpStatusError, {"effect": "write", "method": "POST", "idempotency_header": "X-Key"}),
    ):
        with pytest.raises(ToolError) as failed:
            await declared(tmp_path, url, **fields).call({}, context)
        assert type(failed.value) is expected
        assert failed.value.retryable is (again and expected is HttpStatusError)


async def test_a_cut_or_late_answer_leaves_a_write_unknown_and_no_connection_does_not(
    web: Web, tmp_path: Path, context: ToolContext
) -> None:
    async def cut(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def hang(_request: Request, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    web.answers |= {"/cut": cut, "/hang": hang}
    for path in ("/cut", "/hang"):
        with pytest.raises(UnknownOutcome, match="whether it took effect is not known"):
            await declared(tmp_path, web.url(path), effect="write", method="PUT", timeout="500ms").call({}, context)
        with pytest.raises(FetchFailed) as failed:
            await declared(tmp_path, web.url(path), timeout="500ms").call({}, context)
        assert failed.value.retryable


@pytest.mark.parametrize("encoding", ["br", "gzip"])
async def test_a_write_whose_answer_cannot_be_read_is_unknown(
    web: Web, tmp_path: Path, context: ToolContext, encoding: str
) -> None:
    url = web.page("/", b"\x0b\x02\x80ok\x03", extra=f"Content-Encoding: {encoding}\r\n")
    with pytest.raises(UnknownOutcome, match="whether it took effect is not known"):
        await declared(tmp_path, url, effect="write", method="POST").call({}, context)
    with pytest.raises(ContentRefused, match=r"^ask: the answer "):
        await declared(tmp_path, url).call({}, context)


async def test_without_a_connection_nothing_was_written(
    tmp_path: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SENNIT_HTTP_ALLOW", raising=False)
    with pytest.raises(FetchFailed) as failed:
        await declared(tmp_path, "http://127.0.0.1:9/", effect="write", method="POST").call({}, context)
    assert failed.value.retryable


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "https://{host}/x"}, "tools[0].url"),
        ({"url": "file:///etc/passwd"}, "tools[0].url"),
        ({"url": "https://a.example/{id}"}, "list id under `required`"),
        ({"url": "https://a.example/{a b}"}, "write arguments as {name}"),
        ({"name": "1x"}, "tools[0].name"),
        ({"effect": "maybe"}, "tools[0].effect"),
        ({"methd": "GET"}, "tools[0].methd"),
        ({"arguments": {"type": "object", "propertys": {}}}, "schema keyword `propertys` is not supported"),
        (
            {"headers": {"X": "$NOT_SET"}},
            "the variable NOT_SET is not set on this worker; it is needed at tools.ask.headers.X",
        ),
        ({"headers": {"X": "é☃"}}, "tools.ask.headers: "),
    ],
)
def test_a_wrong_declaration_is_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolSetupError) as wrong:
        declared(tmp_path, **{"url": "https://a.example/", **fields})
    assert message in str(wrong.value)
