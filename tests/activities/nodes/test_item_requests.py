"""What the run of an item is started with."""

from pathlib import Path
from typing import Any

from doubles.plan.samples import annotated, each, plan, tool
from doubles.stores import new_store

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import Binder, parse_unit
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.item_runs import item_request
from sennit.activities.nodes.origins import subagent_ledger
from sennit.activities.storage.media import keep_media, load_media
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.workflows.messages.node_calls import NodeCall
from sennit.workflows.plan.language.nodes import MapNode
from sennit.workflows.plan.language.parser import parse_plan

RUN = "4f2a0000-0000-0000-0000-000000000000"
HOME = f"space/{RUN}"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(92)


async def asked(library: ArtifactReader, do: dict[str, Any], **inputs: Any) -> tuple[dict[str, Any], str]:
    """Return the request for the first item of a map, and the run prefix of its run."""
    declared = {name: {"type": "object"} for name in inputs}
    data = plan(tool(), each(do=do), inputs=declared)
    parsed = parse_plan(data)
    packed = annotated(data, inputs).pack()
    checked = StoredPlan(
        run_context="", goal="g", docs=None, inputs=inputs, plan=parsed, wanted={}, execution_plan=packed
    )
    digest = await library.put(HOME, {"items": [1]})
    call = NodeCall(run=RUN, plan="plan", nodes=("m[0]",))
    unit = parse_unit("m[0]")
    binder = Binder(library, HOME, checked, call, {"a": digest})
    await binder.load(unit)
    context = NodeContext(checked, unit, call, binder, HOME, Attempts(1, 0))
    node = parsed.nodes[1]
    assert isinstance(node, MapNode)
    request = await item_request(library, context, node)
    return request, f"space/{subagent_ledger(context).run_prefix}"


async def test_the_run_of_an_item_has_the_media_among_the_inputs(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    photo = (await keep_media(store, HOME, PNG, "a.png")).model_dump(mode="json")
    do = {"kind": "llm", "prompt": "$item", "media": ["$input.photo"], "tools": ["search"]}
    _, below = await asked(ArtifactReader(store), do, photo=photo)
    [(loaded, _)] = await load_media(store, below, [photo])
    assert loaded.bytes == len(PNG)


async def test_the_run_of_an_item_has_no_limit_of_replans_that_its_agents_would_inherit(tmp_path: Path) -> None:
    request, _ = await asked(
        ArtifactReader(new_store(tmp_path)), {"kind": "llm", "prompt": "$item", "tools": ["search"]}
    )
    assert "max_replans" not in request
