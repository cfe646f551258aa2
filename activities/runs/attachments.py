"""The files that are attached to a run: kept as artifacts before anything is spent, and never read again."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from sennit.activities.limits import MAX_MEDIA_BYTES
from sennit.activities.providers.media import lacks, lacks_all, why_not
from sennit.activities.runs.model_choice import serving_models
from sennit.activities.storage.artifacts import key_of
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.media import keep_media
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.media import BadMedia, check_size
from sennit.workflows.messages.contracts import PrepareCall
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.media import Media, MediaKind, as_media
from sennit.workflows.plan.language.nodes import ModelCall, Plan
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.language.references import BindError, parse_reference, resolve

_SHOWN_TO = ("worker", "joiner")
"""The roles that are given a run's goal, and what is attached to it."""
_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)


@dataclass(frozen=True, slots=True)
class Attachments:
    """Keeps the files that are attached to runs, on this worker."""

    library: ArtifactReader
    documents: DocumentRule

    async def keep(self, run_prefix: str, call: PrepareCall) -> dict[str, Media]:
        """Keep the attached files of a run and return the media that they are, by name.

        Safe to repeat: a run that is prepared once more has what it had, whatever has become of the files. Raises
        DocsNotFound, BadMedia and StoreUnavailable.
        """
        files = call.request.attachments
        if not files:
            return {}
        note = f"attachments {key_of(files)}"
        noted = await self.library.noted(run_prefix, note)
        if noted is None:
            kept = {name: await self._media(run_prefix, file, call) for name, file in files.items()}
            noted = {name: media.model_dump(mode="json") for name, media in kept.items()}
            await self.library.note(run_prefix, note, noted)
        return {name: Media.model_validate(media) for name, media in noted.items()}

    async def _media(self, run_prefix: str, file: str, call: PrepareCall) -> Media:
        path = self.documents.attached(file, scheduled=call.scheduled)
        shown = f"attached file {file}"
        try:
            check_size(path.stat().st_size, shown)
            body = await asyncio.to_thread(_beginning, path)
        except OSError as error:
            raise BadMedia(f"{shown} cannot be read: {error.strerror}") from None
        return await keep_media(self.library.store, run_prefix, body, shown, path.name)


def _beginning(path: Path) -> bytes:
    """Return what a file has, or one byte more than media may have: it may grow."""
    with path.open("rb") as file:
        return file.read(MAX_MEDIA_BYTES + 1)


def unseen(attached: Mapping[str, Media], models: Mapping[Any, Sequence[str]]) -> str:
    """Return why a model that is given the goal cannot be shown what is attached to it, "" where nothing says so."""
    for role in _SHOWN_TO:
        names = models.get(role, ())
        for media in attached.values():
            if names and all(lacks(name, media.kind) for name in names):
                return f"attachments: {names[0]} takes no {media.kind} ({media.name}): {why_not(names[0])}"
    return ""


def media_problems(models: Mapping[str, Sequence[str]], plan: Plan, inputs: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the media of a plan that no model of its call takes, as far as that is known before the run, and inputs
    that stand where media must.
    """
    for index, node in enumerate(plan.nodes):
        for where, work in dependencies.works_of(node):
            if isinstance(work, ModelCall):
                names = serving_models(models, work)
                for position, value in enumerate(work.media):
                    place = ("nodes", index, *where, "media", position)
                    if sentence := _problem(names, value, inputs):
                        yield Problem("media", place, sentence)


def _problem(names: Sequence[str], value: Any, inputs: Mapping[str, Any]) -> str:
    """Return what is wrong with one value of `media`, "" if nothing is known."""
    reference = parse_reference(value) if isinstance(value, str) else None
    known = [value]
    if reference is not None:
        if reference.node != "input":
            refused = all(map(lacks_all, names))
            return f"{names[0]} takes no images, PDFs and audio: {why_not(names[0])}" if refused else ""
        try:
            given = resolve(reference, inputs)
        except BindError:
            return ""  # that the input has no such part is said elsewhere
        known = given if isinstance(given, list) else [given]
    for each in known:
        media = as_media(each)
        if media is None:
            return f"`{value}` is no image, PDF or audio; attach one with --attach {_input_of(value)}=FILE"
        if all(lacks(name, media.kind) for name in names):
            return f"{names[0]} takes no {media.kind}: {why_not(names[0])}"
    return ""


def _input_of(value: str) -> str:
    reference = parse_reference(value)
    return str(reference.path[0]) if reference is not None and reference.path else "NAME"
