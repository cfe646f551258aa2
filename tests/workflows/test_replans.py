"""A joiner asks for more nodes, over real HTTP and a real server."""

import json

from doubles.local_workers import Start

from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer

PLANNER, JOINER = "You plan work", "You put results together"
PLAN = '1. nap(value="6,650 km long")\n2. answer("Which?", $1)'
LINES = r'"3. nap(value=\"a\")\n4. nap(value=\"b\")\n5. nap(value=\"c\")\n6. answer($1, $3, $4, $5)"'
MORE_NODES = f'{{"replan": {{"why": "the page on the Amazon is gone", "nodes": {LINES}}}}}'
ANSWER = '{"answer": "The Nile."}'


async def test_a_setting_of_earlier_versions_is_taken_with_a_warning(begin: Start, model_server: ModelServer) -> None:
    """Requests and schedules may carry it: nobody is asked about a replan any more."""
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, MORE_NODES, ANSWER)
    report = await (await begin(goal="Which is longer?", approve_replans_above=3)).result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    told = (
        "`approve_replans_above` is not a setting any more, so nobody was asked about replans; bound them with `budget`"
    )
    assert told in report["warnings"]


SCRIPT = """
async def main():
    first = await nap(value="one")
    return await llm("Is it long?", first, tools=["nap"])
"""


async def test_a_run_whose_program_has_called_something_may_be_replanned(
    begin: Start, model_server: ModelServer
) -> None:
    """The program's calls, the tool loop in it and the tool loop beside it are there when the joiner asks for more."""
    plan = {
        "nodes": [
            {"id": "p", "kind": "program", "script": SCRIPT},
            {"id": "n1", "kind": "llm", "prompt": "How much?", "tools": ["nap"]},
            {"id": "n2", "kind": "llm", "role": "joiner", "prompt": "Which?", "inputs": ["p", "n1"]},
        ],
        "answer": "$n2",
    }
    model_server.on(PLANNER, json.dumps(plan))
    for question, value in (("Is it long?", "two"), ("How much?", "three")):
        model_server.on(question, Reply("", calls=(Call("nap", {"value": value}),)), results=0)
        model_server.on(question, f"As {value}.", results=1)
    more = r'"3. nap(value=\"four\")\n4. answer($p, $n1, $3)"'
    model_server.on(JOINER, f'{{"replan": {{"why": "it is not enough", "nodes": {more}}}}}', ANSWER)
    report = await (await begin(goal="Which is longer?")).result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    assert [line["id"] for line in report["nodes"]] == [
        "p", "p_1", "p_2", "p_2_t1_1", "p_2_t1_all", "p_2_t2", "n1", "n1_t1_1", "n1_t1_all", "n1_t2", "n2", "n3", "n4",
    ]  # fmt: skip
