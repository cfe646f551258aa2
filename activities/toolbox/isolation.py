"""Runs a tool in a process of its own: one whose worker was lost, perhaps because of it."""

import asyncio
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

from sennit.activities.limits import MAX_ISOLATED_CALLS
from sennit.activities.toolbox.errors import WorkerLost
from sennit.activities.toolbox.stack import Stack, keep_stack, stack_of
from sennit.activities.toolbox.threads import guarded, tool_threads

START_SECONDS: Final = 60.0
_FORKS: Final = multiprocessing.get_context("forkserver")
# Many calls are lost with one worker: once for all.
_FORKS.set_forkserver_preload(["sennit.activities.toolbox.loader"])
_slots = asyncio.Semaphore(MAX_ISOLATED_CALLS)


async def run_isolated(
    function: Callable[[], Any], tool: str, limit: asyncio.Timeout | None = None
) -> Any:
    """Call a function in a process that ends with this call, however it ends. The time of
    `limit` does not include its start. Raises what the function raises, and WorkerLost
    when it ends its process.
    """
    time = asyncio.get_running_loop().time
    when = None
    if limit:
        when = limit.when()
    left = None
    if when is not None:
        left = when - time()
    if limit:
        limit.reschedule(None)
    async with _slots:
        receiver, sender = _FORKS.Pipe(duplex=False)
        process = _FORKS.Process(target=_main, args=(sender, function), daemon=True)
        receive = partial(tool_threads.run, receiver.recv, tool)
        try:
            async with asyncio.timeout(START_SECONDS):
                await asyncio.to_thread(process.start)
                sender.close()
                await receive()
            if limit and left is not None:
                limit.reschedule(time() + left)
            result, failed = await receive()
        except EOFError:
            await asyncio.to_thread(process.join)
            raise WorkerLost(f"it ended its process, with exit code {process.exitcode}") from None
        finally:
            if process.pid is not None:
                process.kill()
    if failed is not None:
        error, stack = failed
        keep_stack(error, stack)
        raise error
    return result


def _main(sender: Connection, function: Callable[[], Any]) -> None:
    threading.Thread(target=_follow_parent, daemon=True).start()
    sender.send(None)  # everything is imported
    try:
        answer: tuple[Any, tuple[Exception, Stack] | None] = (guarded(function), None)
    except Exception as error:  # noqa: BLE001  whatever a tool raises goes to its worker
        answer = (None, (_portable(error), stack_of(error)))
    sender.send(answer)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> Exception:
    with suppress(Exception):
        copy: Exception = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
        return copy
    return RuntimeError(f"{type(error).__name__}: {error}")
