"""Images, PDFs and recordings in the artifact store: how their bytes come in and out, and
into the runs of forks.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from sennit.activities.limits import MAX_CALL_MEDIA_BYTES
from sennit.activities.storage.artifacts import ArtifactStore
from sennit.activities.toolbox.media import BadMedia, checked_type, decoded, is_file, type_of
from sennit.workflows.plan.language.media import Media, as_media
from sennit.workflows.plan.language.text import format_value
from sennit.workflows.plan.limits import MAX_CALL_MEDIA

_Change = Callable[[dict[str, Any]], Awaitable[Any]]
_FILE = (b'"media":"', b'"data":"')
_KEPT = (b'"media":"', b'"artifact":"')
"""What stands in an output that has media with its bytes, or media that is kept: no
other output is searched.
"""


async def keep_media(
    store: ArtifactStore, run_prefix: str, body: bytes, shown: str, name: str = ""
) -> Media:
    """Keep the bytes of media and return the value that stands for it. `shown` is what
    people call it in an error.

    Safe to repeat: the same bytes are the same artifact. Raises BadMedia and StoreUnavailable.
    """
    content_type = checked_type(body, shown)
    artifact = await store.put(run_prefix, body)
    return Media(media=content_type, artifact=artifact, bytes=len(body), name=name[:200])


async def with_media_kept(store: ArtifactStore, run_prefix: str, output: Any, body: bytes) -> Any:
    """Return a tool's output, whose `body` is given, with its media kept and values in their place
    that name it. What only looks like media stays as it is. Raises StoreUnavailable.
    """
    if not all(mark in body for mark in _FILE):
        return output

    async def keep(value: dict[str, Any]) -> Any:
        try:
            content = decoded(str(value["data"]), "media")
            media = await keep_media(store, run_prefix, content, "media", str(value["name"]))
        except BadMedia:
            return value
        return media.model_dump(mode="json")

    return await _changed(output, is_file, keep)


async def copy_media(
    store: ArtifactStore, home: str, run_prefix: str, output: Any, body: bytes
) -> None:
    """Keep the media that an output of another run names in this run too, so that it needs nothing
    of that one. Raises BodyMissing and StoreUnavailable.
    """
    if not all(mark in body for mark in _KEPT):
        return

    async def copy(value: dict[str, Any]) -> Any:
        await store.put(run_prefix, await store.get(home, value["artifact"]))
        return value

    await _changed(output, lambda value: as_media(value) is not None, copy)


async def load_media(
    store: ArtifactStore, run_prefix: str, values: list[Any]
) -> list[tuple[Media, str]]:
    """Return media with its bytes in base64, as every provider wants them. A value is
    media or a list of such.

    Its size is that of its bytes, whatever the value says. Raises BadMedia for any other value, for
    more files or bytes than a call may have, BodyMissing and StoreUnavailable.
    """
    wanted = [_checked(value) for value in _flat(values)]
    if len(wanted) > MAX_CALL_MEDIA:
        many = f"{len(wanted):,} files; at most {MAX_CALL_MEDIA}"
        raise BadMedia(f"the media of the call has {many}: ask in several calls")
    announced = sum(media.bytes for media in wanted)
    _check_total(announced)  # before anything is read
    loaded: list[tuple[Media, str]] = []
    total = 0
    for media in wanted:
        body = await store.get(run_prefix, media.artifact)
        total += len(body)
        _check_total(total)
        # A value may have been made up: any artifact of the run has a digest.
        if type_of(body) != media.media:
            raise BadMedia(f"the artifact {media.artifact} is no {media.media}")
        true = media.model_copy(update={"bytes": len(body)})
        loaded.append((true, base64.b64encode(body).decode()))
    return loaded


def _check_total(total: int) -> None:
    """Raise BadMedia for more bytes than a call may have."""
    if total > MAX_CALL_MEDIA_BYTES:
        size = f"{total:,} bytes; at most {MAX_CALL_MEDIA_BYTES:,}"
        raise BadMedia(
            f"the media of the call has {size}: make it smaller, or ask in several calls"
        )


async def _changed(
    value: Any, is_one: Callable[[Any], bool], change: Callable[[dict[str, Any]], Awaitable[Any]]
) -> Any:
    """Return a JSON value with each part of it changed for which `is_one` holds."""
    if is_one(value):
        return await change(value)
    if isinstance(value, dict):
        return {name: await _changed(part, is_one, change) for name, part in value.items()}
    if isinstance(value, list):
        return [await _changed(part, is_one, change) for part in value]
    return value


def _flat(values: list[Any]) -> list[Any]:
    """Return values with those of lists among them."""
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list):
            flat.extend(value)
        else:
            flat.append(value)
    return flat


def _checked(value: Any) -> Media:
    media = as_media(value)
    if media is None:
        raise BadMedia(f"`media` has {format_value(value)}, which is no image, PDF or audio")
    return media
