"""Runs that may spend only so much: they stop where they should, say so, and go on when the limit is raised."""

from doubles.local_workers import Start
from doubles.runs import call

from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer

TEXT = "The Nile is about 6,650 kilometres long. " * 6


async def test_dollars_bound_the_first_wave_too(begin: Start, model_server: ModelServer) -> None:
    """A first call is expected to take a thousand tokens at $30 a million, so one starts; each costs $0.0075."""
    model_server.models = ("gpt-5.5",)
    model_server.on("Part", Reply("done", usage=(900, 100)))
    nodes = [{"id": f"n{n}", "kind": "llm", "model": "openai:gpt-5.5", "prompt": f"Part {n}"} for n in range(20)]
    handle = await begin(plan={"nodes": nodes, "answer": "$n0"}, budget={"cost_usd": 0.05}, on_failure="partial")
    report = await handle.result()
    assert (report["status"], report["problem"]) == ("partial", "the budget is spent (cost 0.0525 of 0.05)")
    assert len(model_server.asked) == 7, "one call too many at most"


async def test_time_ends_a_run_with_what_there_is(start: Start) -> None:
    nodes = [call("a", args={"value": 1}), call("b", "hang", args={"name": "overtime"})]
    handle = await start(plan={"nodes": nodes, "answer": "$a"}, budget={"time": "1s"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", {"value": 1})
