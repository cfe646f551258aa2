"""How much media one model call is given, whatever the values say that name it."""

from pathlib import Path

import pytest

from sennit.activities.storage import media
from sennit.activities.storage.location import open_store
from sennit.activities.storage.media import keep_media, load_media
from sennit.activities.toolbox.media import BadMedia
from sennit.workflows.plan.limits import MAX_CALL_MEDIA

RUN = "default/4f2a-run"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(992)


async def test_the_bytes_that_are_loaded_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    store.create()
    kept = await keep_media(store, RUN, PNG, "a.png")
    made_up = {**kept.model_dump(), "bytes": 1}
    [(loaded, _)] = await load_media(store, RUN, [made_up])
    assert loaded == kept

    monkeypatch.setattr(media, "MAX_CALL_MEDIA_BYTES", 2_500)
    assert len(await load_media(store, RUN, [made_up] * 2)) == 2
    with pytest.raises(BadMedia, match="has 3,000 bytes; at most 2,500"):
        await load_media(store, RUN, [made_up] * 3)


async def test_a_list_behind_a_reference_has_no_more_files_than_a_call_may_have(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create()
    kept = (await keep_media(store, RUN, PNG, "a.png")).model_dump()
    assert len(await load_media(store, RUN, [[kept] * MAX_CALL_MEDIA])) == MAX_CALL_MEDIA
    with pytest.raises(BadMedia, match="has 21 files; at most 20"):
        await load_media(store, RUN, [[kept] * MAX_CALL_MEDIA, kept])
