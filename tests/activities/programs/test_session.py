import random
from collections import Counter
from pathlib import Path

import pytest
from doubles.stores import new_store

from sennit.activities.limits import MAX_STEM_CHARACTERS
from sennit.activities.nodes.origins import told_at
from sennit.activities.programs.session import Counts, Session, note_told
from sennit.activities.storage.artifacts import digest_of
from sennit.activities.storage.run_context import ArtifactReader

PREFIX = "space/run"


def begun(node: str = "main", made: int = 0, mark: str = "") -> Session:
    session = Session(script="s", function="main", key="main")
    session.begin(node)
    session.made = made
    if mark:
        session.begin(node, mark=mark)
    return session


def test_a_program_that_runs_again_gives_its_calls_new_ids() -> None:
    session = begun(made=2, mark="r2")
    session.made = 3
    assert [session.call_id(1), session.call_id(2)] == ["main_1", "main_2"]
    again = begun(made=2, mark="r3")
    again.made = 3
    assert session.call_id(3) not in ("main_3", again.call_id(3))


@pytest.mark.parametrize("node", ["main", "a" * 40, "main_2_3_4_5_6_7_8_9_10_11_12_13_14_15_16_17"])
@pytest.mark.parametrize("mark", ["", "again"])
def test_ids_stay_short(node: str, mark: str) -> None:
    session = begun(node, 9_999, mark)
    session.made = 10_000
    assert len(session.stems[-1][1]) <= MAX_STEM_CHARACTERS
    assert len(session.call_id(10_000)) <= 36


async def test_counts_are_those_of_all_calls_and_little_is_stored_anew(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    session, seen = begun(), Counter[str]()
    dice = random.Random(1)
    written = 0
    for _ in range(600):
        library = ArtifactReader(store)  # as another worker would
        counts = await Counts.of(session, library, PREFIX)
        for _ in range(5):
            call = digest_of(str(dice.randrange(1500)).encode())[:16]
            seen[call] += 1
            assert counts.next(call) == seen[call]
        body = counts.put_away()
        if body:
            await store.put(PREFIX, body)
            written += len(body)
        session = Session.model_validate_json(session.model_dump_json())
        assert len(session.model_dump_json()) < 4_000
    assert written < 40 * 3_000 * 12, "each count is stored about log n times"


async def test_a_fork_goes_by_what_a_run_has_told_last(tmp_path: Path) -> None:
    """An attempt that was killed may have told its script that a call ended at another time, and the next one have left
    the call to a later step.
    """
    library = ArtifactReader(new_store(tmp_path))
    session = begun()
    await note_told(library, PREFIX, session, [("K", 11, False)])
    assert await library.noted(PREFIX, told_at("K")) is None, "a fork knows that from the call itself"
    for session.retold, at, is_moved in [(False, 12, True), (True, 7, False), (False, 9, True)]:
        await note_told(library, PREFIX, session, [("K", at, is_moved)])
        assert await library.noted(PREFIX, told_at("K")) == at
