"""The files and folders that are attached to a run: kept as artifacts before anything is
spent, and never read again.

A file is media, which models are shown. A folder is a workspace, in which
calls of the sandbox work.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from sennit.activities.limits import MAX_MEDIA_BYTES
from sennit.activities.providers.media import lacks, lacks_all, why_not
from sennit.activities.runs.model_choice import serving_models
from sennit.activities.storage.artifacts import BodyMissing, encode, key_of
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.media import copy_media, keep_media
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.storage.workspaces import RunWorkspaces, copy_workspaces, folder_at
from sennit.activities.toolbox.errors import WorkspaceRefused
from sennit.activities.toolbox.media import BadMedia, check_size
from sennit.workflows.messages.contracts import PrepareCall
from sennit.workflows.messages.request import has_plan
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.media import Media, MediaKind, as_media
from sennit.workflows.plan.language.nodes import ModelCall, Plan
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.language.references import BindError, parse_reference, resolve
from sennit.workflows.plan.language.workspaces import Workspace, as_workspace

_SHOWN_TO = ("worker", "joiner")
"""The roles that are given a run's goal, and what is attached to it."""
_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)


@dataclass(frozen=True, slots=True)
class Attachments:
    """Keeps the files that are attached to runs, on this worker."""

    library: ArtifactReader
    documents: DocumentRule

    async def keep(self, run_prefix: str, call: PrepareCall) -> dict[str, Media | Workspace]:
        """Keep what is attached to a run and return the values that stand for it, by name.

        Safe to repeat: a run that is prepared once more, or forked, has what it had, whatever has
        become of the files. Raises DocsNotFound, BadMedia, WorkspaceRefused and StoreUnavailable.
        """
        files = call.request.attachments
        if not files:
            return {}
        note = f"attachments {key_of(files)}"
        noted = await self.library.noted(run_prefix, note)
        if noted is None:
            noted = await self._of_origins(run_prefix, call, note)
        if noted is None:
            noted = {}
            for name, file in files.items():
                kept = await self._kept(run_prefix, file, call)
                noted[name] = kept.model_dump(mode="json")
            await self.library.note(run_prefix, note, noted)
        attached: dict[str, Media | Workspace] = {}
        for name, value in noted.items():
            attached[name] = as_workspace(value) or Media.model_validate(value)
        return attached

    async def _of_origins(
        self, run_prefix: str, call: PrepareCall, note: str
    ) -> dict[str, Any] | None:
        """Return what was attached to a run that this one forks, kept in this one too. None if that
        is gone, or was something else.
        """
        namespace = run_prefix.rpartition("/")[0]
        for origin in call.request.origins:
            home = f"{namespace}/{origin}"
            found: dict[str, Any] | None = await self.library.noted(home, note)
            if found is not None:
                body = encode(found)
                try:
                    await copy_media(self.library.store, home, run_prefix, found, body)
                    await copy_workspaces(self.library.store, home, run_prefix, found, body)
                except BodyMissing:
                    continue
                await self.library.note(run_prefix, note, found)
                return found
        return None

    async def _kept(self, run_prefix: str, file: str, call: PrepareCall) -> Media | Workspace:
        """Keep one file or folder. Which of them a worker may read is what its operator and
        its user have allowed.
        """
        path = self.documents.attached(file, scheduled=call.scheduled)
        if not path.is_dir():
            return await self._media(run_prefix, file, path)
        if not has_plan(call.request):
            raise WorkspaceRefused(
                f"attached folder {file}: a goal takes files; a folder is an input of a plan"
            )
        try:
            folder = await asyncio.to_thread(folder_at, path)
        except OSError as error:  # it may also change while it is read
            raise WorkspaceRefused(
                f"attached folder {file} cannot be read: {error.strerror}"
            ) from None
        return await RunWorkspaces(self.library.store, run_prefix).keep(folder)

    async def _media(self, run_prefix: str, file: str, path: Path) -> Media:
        shown = f"attached file {file}"
        try:
            body = await asyncio.to_thread(_beginning, path, shown)
        except OSError as error:
            raise BadMedia(f"{shown} cannot be read: {error.strerror}") from None
        return await keep_media(self.library.store, run_prefix, body, shown, path.name)


def _beginning(path: Path, shown: str) -> bytes:
    """Return what a file has, or one byte more than media may have: it may grow.
    Raises BadMedia, OSError.
    """
    check_size(path.stat().st_size, shown)
    with path.open("rb") as file:
        return file.read(MAX_MEDIA_BYTES + 1)


def unseen(attached: Mapping[str, Media], models: Mapping[Any, Sequence[str]]) -> str:
    """Return why a model that is given the goal cannot be shown what is attached to it, ""
    where nothing says so.
    """
    for role in _SHOWN_TO:
        names = models.get(role, ())
        for media in attached.values():
            if names and _all_lack(names, media.kind):
                return (
                    f"attachments: {names[0]} takes no {media.kind} ({media.name}): "
                    f"{why_not(names[0])}"
                )
    return ""


def media_problems(
    models: Mapping[str, Sequence[str]], plan: Plan, inputs: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield the media of a plan that no model of its call takes, as far as that is known before the
    run, and inputs that stand where media must.
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
    reference = None
    if isinstance(value, str):
        reference = parse_reference(value)
    known = [value]
    if reference is not None:
        if reference.node != "input":
            if all(map(lacks_all, names)):
                return f"{names[0]} takes no images, PDFs and audio: {why_not(names[0])}"
            return ""
        try:
            given = resolve(reference, inputs)
        except BindError:
            return ""  # that the input has no such part is said elsewhere
        known = given if isinstance(given, list) else [given]
    for each in known:
        media = as_media(each)
        if media is None:
            return (
                f"`{value}` is no image, PDF or audio; attach one with --attach "
                f"{_input_of(value)}=FILE"
            )
        if _all_lack(names, media.kind):
            return f"{names[0]} takes no {media.kind}: {why_not(names[0])}"
    return ""


def _all_lack(names: Sequence[str], kind: MediaKind) -> bool:
    """Whether no model can be shown media of a kind."""
    return all(lacks(name, kind) for name in names)


def _input_of(value: str) -> str:
    reference = parse_reference(value)
    if reference is None or not reference.path:
        return "NAME"
    return str(reference.path[0])
