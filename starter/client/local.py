"""The local stack as a server for clients: joined, or started if it does not run."""

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


def has_local_runs() -> bool:
    """Return whether a local stack was ever started with this state directory, so that it may hold runs."""
    return StateDir.find().database.exists()
