"""Outputs for clients, when what answers the query is not to be trusted."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.common.v1 import Payloads, WorkflowExecution, WorkflowType
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionStartedEventAttributes
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.limits import MAX_BODY_BYTES
from sennit.activities.runs.outputs import OutputReader
from sennit.activities.storage.artifacts import ArtifactStore, encode
from sennit.activities.storage.location import open_store
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.messages.outputs import GONE, NO_OUTPUT, NO_SUCH_NODE, OutputsCall, OutputsReply

OWN, OTHER = "0a1b2c3d-0000-4000-8000-000000000000", "aaaabbbb-0000-4000-8000-000000000000"
BELOW = f"{OWN}-{'ab' * 8}"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    store = open_store(tmp_path / "store")
    store.create()
    return store


class Server:
    """A server that knows how each workflow began; each gives the same answer to every query."""

    namespace, data_converter = "mine", DataConverter.default

    def __init__(self, answer: Any, **began: WorkflowExecutionStartedEventAttributes) -> None:
        self._answer, self._began, self.workflow_service = answer, began, self

    def get_workflow_handle(self, *_: Any, **__: Any) -> Any:
        return self

    async def query(self, *_: Any) -> Any:
        return self._answer

    async def get_workflow_execution_history(self, request: Any) -> Any:
        if request.execution.workflow_id not in self._began:
            raise RPCError("no such workflow", RPCStatusCode.NOT_FOUND, b"")
        began = self._began[request.execution.workflow_id]
        event = HistoryEvent(workflow_execution_started_event_attributes=began)
        return SimpleNamespace(history=SimpleNamespace(events=[event]))


def begun(
    kind: str = "AgentRun", parent: str = "", run_prefix: str | None = None, first: str = OWN
) -> WorkflowExecutionStartedEventAttributes:
    request: dict[str, Any] = {"goal": "g"} | ({} if run_prefix is None else {"run_prefix": run_prefix})
    return WorkflowExecutionStartedEventAttributes(
        workflow_type=WorkflowType(name=kind),
        first_execution_run_id=first,
        parent_workflow_execution=WorkflowExecution(workflow_id=parent, run_id="r") if parent else None,
        input=Payloads(payloads=DataConverter.default.payload_converter.to_payloads([request])),
    )


async def read(store: ArtifactStore, answer: Any, **began: WorkflowExecutionStartedEventAttributes) -> OutputsReply:
    client = cast("Client", Server(answer, **(began or {"w": begun()})))
    return await OutputReader(ArtifactReader(store)).read(client, OutputsCall(workflow="w", nodes=("a",)))


@pytest.mark.parametrize(
    ("prefix", "began"),
    [
        (OWN, {"w": begun()}),
        (OWN, {"w": begun(parent="mine"), "mine": begun("Report", first=OTHER)}),
        (BELOW, {"w": begun(parent="p", run_prefix=BELOW, first=OTHER), "p": begun()}),
        (
            f"{OWN}-{'0' * 16}",
            {
                "w": begun(parent="p", run_prefix=f"{OWN}-{'0' * 16}", first="x"),
                "p": begun(parent="q", run_prefix=BELOW, first="y"),
                "q": begun(),
            },
        ),
    ],
    ids=["root", "below a workflow of one's own", "sub-agent", "sub-agent of a sub-agent"],
)
async def test_a_run_reads_what_it_has_stored(store: ArtifactStore, prefix: str, began: dict[str, Any]) -> None:
    ref = await store.put(f"mine/{prefix}", encode("own"))
    (part,) = (await read(store, {"places": [{"ref": ref}]}, **began)).parts
    assert (part.error, part.size) == (None, len('"own"'))


@pytest.mark.parametrize(
    "began",
    [
        {"w": begun(first="")},
        {"w": begun("Other")},
        {"w": begun(run_prefix=OTHER)},
        {"w": begun(parent="p", run_prefix=OTHER), "p": begun()},
        {"w": begun(parent="p", run_prefix=f"{OTHER}-{'ab' * 8}"), "p": begun()},
        {"w": begun(parent="p", run_prefix="../theirs/x"), "p": begun()},
        {"w": begun(parent="p", run_prefix=OTHER), "p": begun("Report")},
        {"w": begun(parent="p", run_prefix=None), "p": begun()},
        {"w": begun(parent="p", run_prefix=BELOW), "p": begun(first="")},
        {"w": begun(parent="p", run_prefix=BELOW)},
    ],
)
async def test_no_workflow_gets_at_what_another_has_stored(store: ArtifactStore, began: dict[str, Any]) -> None:
    ref = await store.put("theirs/x", encode("secret"))
    for prefix in (OTHER, f"{OTHER}-{'ab' * 8}"):
        await store.put(f"mine/{prefix}", encode("secret"))
    (part,) = (await read(store, {"places": [{"ref": ref}]}, **began)).parts
    assert part.error is not None
    if part.error.type != GONE:
        assert part.error.type == NO_SUCH_NODE
        assert "does not say where its outputs are" in part.error.message


async def test_what_is_no_digest_touches_no_file(store: ArtifactStore, tmp_path: Path) -> None:
    await store.put(f"mine/{OWN}", encode("own"))
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    answer = {"places": [{"ref": "../../../victim.txt"}]}
    (part,) = (await read(store, answer)).parts
    assert part.error is not None
    assert victim.read_text() == "precious"


async def test_an_answer_of_another_length_is_refused(store: ArtifactStore) -> None:
    (part,) = (await read(store, {"places": []})).parts
    assert part.error is not None
    assert part.error.message.endswith("it answers 0 places for 1 nodes")


async def test_a_part_is_known_by_what_is_sent_and_says_that_it_was_masked(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await store.put(f"mine/{OWN}", encode("it is hunter-2-is-no-password, or [redacted]"))
    answer = {"places": [{"ref": ref}]}
    (before,) = (await read(store, answer)).parts
    monkeypatch.setenv("SHOP_PASSWORD", "hunter-2-is-no-password")
    (after,) = (await read(store, answer)).parts
    assert before.digest != after.digest
    assert (before.is_masked, after.is_masked) == (False, True)


async def test_what_is_too_large_in_all_is_not_put_together(store: ArtifactStore) -> None:
    prefix = f"mine/{OWN}"
    large = await store.put(prefix, encode("x" * (MAX_BODY_BYTES // 4)))
    (part,) = (await read(store, {"places": [{"ref": json.dumps([large] * 5)}]})).parts
    assert part.error is not None
    assert (part.error.type, f"{MAX_BODY_BYTES:,} bytes" in part.error.message) == (NO_OUTPUT, True)
