"""Workspaces as tools see them: a folder that a call is given, and the folder
that it leaves behind.

A workspace is a value. It names a folder as it was at one time, and never changes: a call that
works in it returns another one. So there is nothing to lock, two calls with one workspace work on
two branches of it, and a call that is killed, tried again, or made once more in a fork begins with
what it began with at first.
"""

from pathlib import Path
from typing import Final, NoReturn, Protocol

from sennit.activities.sandbox.folders import Folder
from sennit.activities.toolbox.errors import WorkspaceRefused
from sennit.workflows.plan.language.workspaces import Workspace


class Workspaces(Protocol):
    """Opens and keeps the workspaces of one run."""

    async def load(self, workspace: Workspace) -> Folder:
        """Return all that is in a workspace. Raises WorkspaceRefused if there is no such one."""
        ...

    async def keep(self, folder: Folder, base: Workspace | None = None) -> Workspace:
        """Keep a folder. Files without a body are those of `base` with the same digest.
        Raises WorkspaceRefused.
        """
        ...

    def write_to(self, place: Path, workspace: Workspace) -> None:
        """Write all that is in a workspace into an empty folder. It blocks: coroutine functions
        call it in a thread. Raises WorkspaceRefused, OSError.
        """
        ...

    def keep_from(self, place: Path, base: Workspace | None = None) -> Workspace:
        """Keep what is in a folder as a workspace; of files that `base` has too nothing is stored
        again. It blocks. Raises WorkspaceRefused for links, devices and whatever else a workspace
        cannot have, and OSError.
        """
        ...


class NoWorkspaces:
    """Stands where a call has no run that could keep a workspace."""

    async def load(self, workspace: Workspace) -> Folder:
        """Raises WorkspaceRefused."""
        self._refuse(workspace)

    async def keep(self, folder: Folder, base: Workspace | None = None) -> Workspace:
        """Raises WorkspaceRefused."""
        self._refuse(folder, base)

    def write_to(self, place: Path, workspace: Workspace) -> None:
        """Raises WorkspaceRefused."""
        self._refuse(workspace, place)

    def keep_from(self, place: Path, base: Workspace | None = None) -> Workspace:
        """Raises WorkspaceRefused."""
        self._refuse(place, base)

    def _refuse(self, *_: object) -> NoReturn:
        raise WorkspaceRefused("a workspace is kept with a run, and this call belongs to none")


NO_WORKSPACES: Final = NoWorkspaces()
