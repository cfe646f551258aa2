"""The processes of scripts without the rehearsal of their parent."""

from collections.abc import Callable

from sennit.activities.programs.cpython import rehearsal, service
from sennit.activities.programs.cpython.service import prepare, serve
from sennit.activities.sandbox.computing_parent import Lines

__all__ = ["prepare", "serve", "settle"]


def settle() -> None:
    """Settle the world alone."""
    rehearsal.rehearse = _leave_out
    service.settle()


def _leave_out(serve: Callable[[Lines], None]) -> None:
    pass
