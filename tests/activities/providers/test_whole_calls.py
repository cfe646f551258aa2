"""Calls of tools that are told as soon as they are whole, while the reply still comes."""

from typing import Any

import pytest
from doubles.model_bench import Bench

from sennit.activities.providers.model import ProviderError, ToolRequest
from sennit.testing.model_rules import Call, Reply

SEARCH = {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
LONG = "a text of which the reply still writes " * 20


def told(calls: list[ToolRequest]) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


async def test_each_call_of_a_reply_is_told_once_and_as_the_reply_has_it(bench: Bench) -> None:
    asked = (Call("search", {"query": 'a "b" {c}'}), Call("search", {"query": LONG}))
    bench.server.on("", Reply("Let me look.", calls=asked))
    calls: list[ToolRequest] = []
    reply = await bench.ask(tools=(SEARCH,), on_call=calls.append)
    assert told(calls) == told(list(reply.calls)) == [(call.name, call.arguments) for call in asked]


async def test_a_call_is_told_although_the_reply_never_ends(bench: Bench) -> None:
    asked = (Call("search", {"query": "a"}), Call("search", {"query": LONG}))
    bench.server.on("", Reply("", calls=asked, fault="hang in stream"))
    calls: list[ToolRequest] = []
    with pytest.raises(ProviderError):
        await bench.ask(tools=(SEARCH,), on_call=calls.append)
    assert told(calls) == [("search", {"query": "a"})]


async def test_an_empty_object_is_no_whole_call_because_some_servers_begin_with_one(bench: Bench) -> None:
    bench.server.on("", Reply("", calls=(Call("search", {}),)))
    calls: list[ToolRequest] = []
    reply = await bench.ask(tools=(SEARCH,), on_call=calls.append)
    assert [call.arguments for call in reply.calls] == [{}]
    assert calls == []
