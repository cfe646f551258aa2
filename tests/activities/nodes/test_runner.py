"""What a finished node leaves behind, and when a successor may trust it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.nodes.runner import Marker, NodeRunner
from activities.storage.artifacts import digest_of, encode
from activities.storage.directory import DirectoryStore
from workflows.messages.contracts import NodeReply

PREFIX, KEY, BODY = "space/run", "key", b'"done"'


def marker(**reply: Any) -> bytes:
    return encode(Marker(reply=NodeReply(**reply)).model_dump(mode="json", exclude_unset=True))


@pytest.mark.parametrize(
    ("text", "stored", "is_trusted"),
    [
        pytest.param(marker(ref=digest_of(BODY)), True, True, id="with its output"),
        pytest.param(marker(ref=digest_of(BODY)), False, False, id="without its output"),
        pytest.param(marker(), True, False, id="of no output"),
        pytest.param(b"{", True, False, id="that is cut off"),
    ],
)
async def test_a_marker_counts_only_with_its_output(
    tmp_path: Path, text: bytes, stored: bool, is_trusted: bool
) -> None:
    store = DirectoryStore(tmp_path)
    if stored:
        await store.put(PREFIX, BODY)
    await store.mark(PREFIX, KEY, text)
    unused = cast("Any", None)
    runner = NodeRunner(store, unused, unused, unused, tmp_path, unused)
    context = cast("Any", SimpleNamespace(run_prefix=PREFIX, call=SimpleNamespace(epoch=1)))
    reply = await runner._marked(context, KEY)
    assert (reply is not None) == is_trusted
    assert (await store.marked(PREFIX, KEY) is not None) == is_trusted, "one that cannot be trusted is removed"
