"""Operations of OpenAPI documents as tools, against a real server on the loopback."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sennit.activities.toolbox import Tool, ToolArgumentError, ToolContext, ToolSetupError
from sennit.activities.toolbox.http.declarations import http_tools
from sennit.workflows.plan.checking import schemas

if TYPE_CHECKING:
    from .conftest import Web
else:
    Web = Any

TEXT = {"type": "string"}
TICKET = {
    "type": "object",
    "required": ["id", "title"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "title": {**TEXT, "minLength": 1, "example": "It is broken", "x-order": 1},
        "parent": {"$ref": "#/components/schemas/Ticket"},
        "due": {**TEXT, "format": "date", "nullable": True},
        "tags": {"type": "array", "items": TEXT, "uniqueItems": True},
    },
}


def parameter(name: str, place: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": TEXT, **fields}


def body(schema: Any = None, kind: str = "application/json", **fields: Any) -> dict[str, Any]:
    return {
        "content": {kind: {"schema": {"$ref": "#/components/schemas/Ticket"} if schema is None else schema}},
        **fields,
    }


DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Tickets", "version": "7"},
    "paths": {
        "/tickets": {
            "get": {
                "operationId": "listTickets",
                "summary": "All tickets.",
                "parameters": [
                    parameter("status", "query", schema={"type": "array", "items": TEXT}),
                    parameter("page", "query", schema={"type": "integer", "exclusiveMinimum": True, "minimum": 0}),
                    parameter("X-Trace", "header"),
                    parameter("deep", "query", style="deepObject", schema={"type": "object"}),
                ],
            },
            "post": {
                "operationId": "open-ticket",
                "parameters": [parameter("dry run", "query", schema={"type": "boolean"})],
                "requestBody": {"$ref": "#/components/requestBodies/New"},
            },
        },
        "/tickets/{ticket-id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {"description": "One ticket."},
            "head": {"operationId": "knowsTicket"},
            "delete": {"operationId": "dropTicket"},
            "patch": {"operationId": "changeTicket", "requestBody": body(TEXT, "application/merge-patch+json")},
        },
        "/search": {"post": {"operationId": "search", "requestBody": body({"type": "object"}, required=True)}},
    },
    "components": {
        "schemas": {"Ticket": TICKET, "Other": TEXT},
        "parameters": {"Id": parameter("ticket-id", "path", required=True, schema={"type": "integer"})},
        "requestBodies": {"New": body(required=True)},
    },
}


async def read(folder: Path, content: Any = DOCUMENT, **fields: Any) -> tuple[dict[str, Tool], dict[str, str]]:
    """Return the tools of a document in a file by name, and why others are left out."""
    (folder / "api.json").write_text(json.dumps(content))
    source = {"name": "t", "document": "api.json", **fields}
    (folder / "http.json").write_text(json.dumps({"openapi": [source]}))
    tools, left_out = await asyncio.to_thread(http_tools, folder / "http.json", {"TOKEN": "s3cret-1"})
    return {each.name: each for each in tools}, left_out


async def test_operations_are_tools_that_read_or_write(tmp_path: Path) -> None:
    tools, left_out = await read(tmp_path, url="https://t.example.com", effects={"search": "read"})
    assert left_out == {}
    assert {name: (each.effect, each.description) for name, each in tools.items()} == {
        "t_listTickets": ("read", "All tickets."),
        "t_open_ticket": ("write", "POST /tickets"),
        "t_get_tickets_ticket_id": ("read", "One ticket."),
        "t_knowsTicket": ("read", "HEAD /tickets/{ticket-id}"),
        "t_dropTicket": ("write", "DELETE /tickets/{ticket-id}"),
        "t_changeTicket": ("write", "PATCH /tickets/{ticket-id}"),
        "t_search": ("read", "POST /search"),
    }
    listing, opening = tools["t_listTickets"].schema, tools["t_open_ticket"].schema
    assert listing["properties"] == {
        "status": {"type": "array", "items": TEXT},
        "page": {"type": "integer", "minimum": 0},
    }
    assert opening["required"] == ["body"]
    assert opening["properties"]["body"] == {"$ref": "#/$defs/Ticket"}
    assert opening["$defs"] == {
        "Ticket": {
            "type": "object",
            "required": ["title"],
            "properties": {
                "title": {**TEXT, "minLength": 1, "examples": ["It is broken"]},
                "parent": {"$ref": "#/$defs/Ticket"},
                "due": {"type": ["string", "null"], "format": "date"},
                "tags": {"type": "array", "items": TEXT},
            },
        }
    }


async def test_calls_reach_the_server_as_the_document_says(web: Web, tmp_path: Path, context: ToolContext) -> None:
    for path in ("/v2/tickets?status=a&status=b&page=2", "/v2/tickets?dry+run=true", "/v2/tickets/7", "/v2/tickets/8"):
        web.page(path, b'{"id": 7}', "application/json")
    document = {**DOCUMENT, "servers": [{"url": web.url("/{base}/"), "variables": {"base": {"default": "v2"}}}]}
    fields = {"headers": {"Authorization": "Bearer $TOKEN"}, "idempotency_header": "Idempotency-Key"}
    tools, _ = await read(tmp_path, document, **fields)
    got = await tools["t_listTickets"].call({"status": ["a", "b"], "page": 2}, context)
    assert got["data"] == {"id": 7}
    with pytest.raises(ToolArgumentError, match="title"):
        await tools["t_open_ticket"].call({"body": {"due": None}}, context)
    await tools["t_open_ticket"].call({"body": {"title": "x"}, "dry run": True}, context)
    await tools["t_get_tickets_ticket_id"].call({"ticket_id": 7}, context)
    await tools["t_changeTicket"].call({"ticket_id": 8, "body": "new"}, context)
    await tools["t_changeTicket"].call({"ticket_id": 8}, context)
    sent = [(each.method, each.path, each.body) for each in web.requests]
    assert sent == [
        ("GET", "/v2/tickets?status=a&status=b&page=2", b""),
        ("POST", "/v2/tickets?dry+run=true", b'{"title": "x"}'),
        ("GET", "/v2/tickets/7", b""),
        ("PATCH", "/v2/tickets/8", b'"new"'),
        ("PATCH", "/v2/tickets/8", b""),
    ]
    assert web.requests[3].headers["content-type"] == "application/merge-patch+json"
    assert all(each.headers["authorization"] == "Bearer s3cret-1" for each in web.requests)
    assert ["idempotency-key" in each.headers for each in web.requests] == [False, True, False, True, True]


async def test_a_document_by_url_may_name_only_its_own_server(web: Web, tmp_path: Path, context: ToolContext) -> None:
    web.page("/tickets/7", b"{}", "application/json")
    address = web.page("/api.json", json.dumps(DOCUMENT).encode(), "application/json")
    tools, _ = await read(tmp_path, document=address, operations=["GET /tickets/*"])
    assert list(tools) == ["t_get_tickets_ticket_id"]
    await tools["t_get_tickets_ticket_id"].call({"ticket_id": 7}, context)
    elsewhere = {**DOCUMENT, "servers": [{"url": "http://127.0.0.1:1/"}]}
    address = web.page("/away.json", json.dumps(elsewhere).encode(), "application/json")
    with pytest.raises(
        ToolSetupError, match=r"its server is 'http://127\.0\.0\.1:1/', on another host; if you trust that"
    ):
        await read(tmp_path, document=address)
    tools, _ = await read(tmp_path, document=address, url=web.url(""))
    await tools["t_get_tickets_ticket_id"].call({"ticket_id": 7}, context)
    assert [each.path for each in web.requests].count("/tickets/7") == 2


def one(**operation: Any) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "paths": {"/a": {"post": {"operationId": "do", **operation}}, "/b": {"get": {"operationId": "see"}}},
    }


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            one(parameters=[parameter("X-Key", "header", required=True)]),
            "it needs the header 'X-Key'; give that under `headers`",
        ),
        (one(parameters=[parameter("a", "cookie", required=True)]), "it needs the cookie 'a'"),
        (
            one(requestBody=body({}, "multipart/form-data", required=True)),
            "it needs a body of the type multipart/form-data",
        ),
        (one(parameters=[parameter("body", "query")], requestBody=body({})), "one of its parameters is called `body`"),
        (one(parameters=[{"$ref": "#/components/parameters/No"}]), "it refers to '#/components/parameters/No', which"),
        (one(requestBody=body()), "it refers to the schema 'Ticket', which the document does not have"),
        (one(requestBody=body({"$ref": "other.json#/X"})), "it refers to 'other.json#/X', which is not among"),
        (one(requestBody=body(False, required=True)), "it needs the argument 'body', for which its schema allows no"),
        (one(operationId="do" * 40), "that cannot be a tool's name"),
        (
            {
                "openapi": "3.0",
                "paths": {"/a/{x}": {"post": {"operationId": "do"}}, "/b": {"get": {"operationId": "see"}}},
            },
            "its path has {x}, and no parameter says what that is",
        ),
    ],
)
async def test_an_operation_that_can_never_be_called_is_left_out_and_named(
    tmp_path: Path, document: dict[str, Any], reason: str
) -> None:
    tools, left_out = await read(tmp_path, document, url="http://t.example.com")
    assert list(tools) == ["t_see"]
    ((name, why),) = left_out.items()
    assert name.startswith("t_do")
    assert why.startswith(reason)


async def test_a_schema_that_only_says_yes_or_no(web: Web, tmp_path: Path, context: ToolContext) -> None:
    """OpenAPI 3.1 allows `true` for any value and `false` for none, with a description beside it."""
    parameters = [
        parameter("any", "query", schema=True, description="Whatever you like."),
        parameter("none", "query", schema=False),
    ]
    web.page("/tickets?any=x+y", b"{}", "application/json")
    operation = {"operationId": "look", "parameters": parameters}
    document = {"openapi": "3.1.0", "paths": {"/tickets": {"get": operation}}}
    tools, left_out = await read(tmp_path, document, url=web.url(""))
    assert not left_out
    look = tools["t_look"]
    assert look.schema["properties"] == {"any": {"description": "Whatever you like."}}
    await look.call({"any": "x y"}, context)
    assert [each.path for each in web.requests] == ["/tickets?any=x+y"]


async def test_a_header_that_is_given_is_no_parameter(tmp_path: Path) -> None:
    document = one(
        parameters=[parameter("X-Key", "header", required=True), parameter("Accept", "header", required=True)]
    )
    tools, left_out = await read(tmp_path, document, url="http://t.example.com", headers={"x-key": "$TOKEN"})
    assert left_out == {}
    assert tools["t_do"].schema["properties"] == {}


@pytest.mark.parametrize(
    ("document", "fields", "problem"),
    [
        (DOCUMENT, {}, "openapi.t: api.json: it does not say where its server is; give that under `url`"),
        (DOCUMENT, {"document": "no.json"}, "openapi.t: no.json: cannot be read: No such file"),
        (DOCUMENT, {"document": "http://127.0.0.1:1/api.json"}, "openapi.t: http://127.0.0.1:1/api.json: 127.0.0.1"),
        (
            DOCUMENT,
            {"operations": ["listTicket"]},
            "openapi.t.operations: no operation fits 'listTicket'; did you mean `l",
        ),
        (DOCUMENT, {"effects": {"lost": "read"}}, "openapi.t.effects: no operation fits 'lost'"),
        ({"swagger": "2.0"}, {}, "is no document of OpenAPI 3"),
        ([], {}, "is no document of OpenAPI 3"),
        (DOCUMENT, {"name": "a b"}, "openapi[0].name"),
    ],
)
async def test_a_wrong_source_is_one_sentence(
    tmp_path: Path, document: Any, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ToolSetupError) as wrong:
        await read(tmp_path, document, **fields)
    assert problem in str(wrong.value)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("path", [".evil.example/x", ":8443/x", "@evil.example/x", "", "x"])
async def test_a_path_never_leads_calls_and_their_secrets_to_another_host(tmp_path: Path, path: str) -> None:
    document = {**DOCUMENT, "paths": {path: {"get": {"operationId": "look"}}}}
    tools, left_out = await read(tmp_path, document, url="https://api.good.com", headers={"x-key": "$TOKEN"})
    assert tools == {}
    assert left_out == {"t_look": f"its path {path!r} does not begin with /, or leads to another host"}


@pytest.mark.parametrize("path", ["/a/../b", "/./b", "/a/%2e%2e/b", "/a/..%2fb/..", "/.."])
async def test_a_path_never_leaves_its_place_at_the_server(tmp_path: Path, path: str) -> None:
    document = {**DOCUMENT, "paths": {path: {"get": {"operationId": "look"}}}}
    tools, left_out = await read(tmp_path, document, url="https://api.good.com/tenant/7")
    assert tools == {}
    assert left_out == {"t_look": f"its path {path!r} has . or .. in it, and would leave its place"}


async def test_a_schema_that_all_operations_share_is_converted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once more for each operation, a document of 200 KB took half a minute."""
    fields = {f"field_{number}": {**TEXT, "description": "x" * 60} for number in range(1_800)}
    paths = {
        f"/p{number}": {
            "post": {"operationId": f"op{number}", "requestBody": body({"$ref": "#/components/schemas/Big"})}
        }
        for number in range(200)
    }
    document = {
        **DOCUMENT,
        "paths": paths,
        "components": {"schemas": {"Big": {"type": "object", "properties": fields}}},
    }
    checked = 0
    known = schemas.unknown_keywords

    def counted(schema: Any, where: Any = ()) -> Any:
        nonlocal checked
        checked += 1
        return known(schema, where)

    monkeypatch.setattr("sennit.activities.toolbox.http.openapi.unknown_keywords", counted)
    tools, left_out = await read(tmp_path, document, url="https://api.good.com")
    assert (len(tools), left_out) == (200, {})
    assert checked < 10_000
