"""The local stack as a server for clients: joined, or started if it does not run."""

from typing import NamedTuple

from starter.client.connection import TemporalServer, local_server
from starter.client.errors import Refused, Unreachable
from starter.dev.messages import LocalStackFailed, Say, WrongSettings, to_stderr
from starter.dev.stack import LocalStack
from starter.dev.state import StateDir


async def join_local_stack(
    namespace: str | None = None, say: Say = to_stderr, *, as_it_is: bool = False
) -> TemporalServer:
    """Return the server of the local stack, started in the background if it does not run.

    An idle stack with other settings is restarted with these, but not with `as_it_is`. Raises Unreachable, or Refused
    if the workers refuse a setting.
    """
    try:
        stack = await LocalStack(say=say).join(as_it_is=as_it_is)
    except WrongSettings as failure:
        raise Refused(str(failure)) from None
    except LocalStackFailed as failure:
        raise Unreachable(str(failure)) from None
    return local_server(stack.address, stack.ui_url, namespace, lambda: not StateDir.find().running())


class Grant(NamedTuple):
    """What the user who starts a run allows it: to read a folder, and to write without asking."""

    docs: str | None
    writes: bool


def grant(server: TemporalServer, *, docs: str | None, run: str | None) -> None:
    """Tell the local stack, if that is the server, what its user allows: a folder to read, a run that asks for nothing.

    What a run's input says of itself allows nothing: a web page or another program may have written it.
    """
    state = _state_of(server) if docs or run else None
    if state is not None:
        state.grant(docs=docs, run=run)


def is_granted(server: TemporalServer, run: str) -> bool:
    """Whether the user of this machine has allowed the run of that id to write without asking."""
    state = _state_of(server)
    return state is not None and state.allows(run)


def _state_of(server: TemporalServer) -> StateDir | None:
    """Return the state directory of the local stack, None if that is not the server."""
    state = StateDir.find()
    record = state.read() if server.is_local else None
    return state if record is not None and server.address.rpartition(":")[2] == str(record.port) else None


def has_local_runs() -> bool:
    """Return whether a local stack was ever started with this state directory, so that it may hold runs."""
    return StateDir.find().database.exists()
