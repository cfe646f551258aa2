"""The local stack as a server for clients: joined, or started if it does not run."""

from sennit.starter.client.connection import TemporalServer, local_server
from sennit.starter.client.errors import Refused, ServerUnreachable
from sennit.starter.dev.messages import LocalStackFailed, Say, WrongSettings, to_stderr
from sennit.starter.dev.stack import LocalStack, Renew
from sennit.starter.dev.state import StateDir
from sennit.workflows.messages.write_grants import Permission


async def join_local_stack(
    namespace: str | None = None, say: Say = to_stderr, renew: Renew = "always"
) -> TemporalServer:
    """Return the server of the local stack, started in the background if it does not run.

    An idle stack with other code or settings is restarted with these, as `renew` says: see
    `LocalStack.join`. Raises ServerUnreachable, or Refused if the workers refuse a setting.
    """
    try:
        stack = await LocalStack(say=say).join(renew)
    except WrongSettings as failure:
        raise Refused(str(failure)) from None
    except LocalStackFailed as failure:
        raise ServerUnreachable(str(failure)) from None
    return local_server(
        stack.address, stack.ui_url, namespace, lambda: not StateDir.find().running()
    )


def open_folder(server: TemporalServer, folder: str) -> None:
    """Let the runs of the local stack, if that is the server, read a folder, or a
    file, that its user names.

    What a run's input says of itself allows nothing: a web page or another
    program may have written it.
    """
    state = _state_of(server)
    if state is not None:
        state.grant_file.open_folder(folder)


def allow(server: TemporalServer, workflow: str, *permissions: Permission) -> str:
    """Return a secret by which one run of that id has these permissions. It is empty if the server
    is no local stack: elsewhere the operator decides.
    """
    state = _state_of(server)
    if state is None:
        return ""
    return state.grant_file.allow(workflow, *permissions)


def is_local_stack(server: TemporalServer) -> bool:
    """Whether the server is that of the local stack, whose workers have
    the settings of its user.
    """
    return _state_of(server) is not None


def _state_of(server: TemporalServer) -> StateDir | None:
    """Return the state directory of the local stack, None if that is not the server."""
    if not server.is_local:
        return None
    state = StateDir.find()
    record = state.read()
    port = server.address.rpartition(":")[2]
    if record is None or port != str(record.port):
        return None
    return state


def has_local_runs() -> bool:
    """Return whether a local stack was ever started with this state directory, so
    that it may hold runs.
    """
    return StateDir.find().database.exists()
