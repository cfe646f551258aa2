"""Headers that expire: printed by a command that an operator declares, and asked for again
when they are refused.
"""

import asyncio
import json
import os
import time
from asyncio.subprocess import PIPE
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sennit.activities.http.client import check_headers
from sennit.activities.limits import MAX_ERROR_BYTES
from sennit.activities.toolbox.redaction import forget, remember
from sennit.workflows.plan.language.validation_messages import first_error

REFUSED_VARIABLE: Final = "HEADERS_REFUSED"
"""The variable, `1`, of a command whose last headers a server has refused."""
_SECONDS: Final = 30.0
_KEPT_SECONDS: Final = 300.0
"""For which headers are kept if their command does not say when they expire."""
_EARLY_SECONDS: Final = 10.0
"""Before their end, headers are asked for again: a request with them takes time too."""


_OF_EVERYBODY: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""Variables of the worker that the command gets; the others may be secrets."""


class CommandFailed(Exception):
    """The command prints no headers. Nothing was sent."""


class _Printed(BaseModel):
    """What a command prints: `{"headers": {"Authorization": "Bearer ..."}, "expires_in": 3600}`."""

    model_config = ConfigDict(extra="forbid")

    headers: dict[str, str]
    expires_in: float = Field(_KEPT_SECONDS, ge=0)


@dataclass(slots=True)
class HeadersCommand:
    """Headers that a command has printed, kept until they expire."""

    command: Sequence[str]
    env: Mapping[str, str]
    needs: Path | None = None
    """A file without which there are no headers, and the command is not asked."""
    _headers: Mapping[str, str] | None = None
    _ends: float = 0.0

    async def current(self) -> Mapping[str, str] | None:
        """Return the headers for a request, None where there are none. Raises CommandFailed."""
        if self.needs is not None and not self.needs.exists():
            return None
        return await self._kept(is_refused=False)

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Return headers in the place of those that a server has refused with
        401. Raises CommandFailed.
        """
        if self._headers is refused:  # another request may have replaced them meanwhile
            self._headers = None
        return await self._kept(is_refused=True)

    async def _kept(self, *, is_refused: bool) -> Mapping[str, str]:
        if self._headers is None or time.monotonic() >= self._ends:
            printed = await self._printed(is_refused=is_refused)
            for secret in _secrets_in(self._headers or {}):
                forget(secret)
            for secret in _secrets_in(printed.headers):
                remember(secret)
            self._headers = printed.headers
            self._ends = time.monotonic() + max(printed.expires_in - _EARLY_SECONDS, 0.0)
        return self._headers

    async def _printed(self, *, is_refused: bool = False) -> _Printed:
        """Run the command, which must end within 30 s. It is told if the server has
        refused what it printed last.
        """
        told = {REFUSED_VARIABLE: "1"} if is_refused else {}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=PIPE,
                env={**_of_everybody(), **self.env, **told},
            )
        except OSError as error:
            raise CommandFailed(f"headers_command: {self.command[0]}: {error.strerror}") from None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_SECONDS):
                output = await _to_end(process.stdout, MAX_ERROR_BYTES)
                status = await process.wait()
        except TimeoutError:
            raise CommandFailed(f"headers_command: no end within {_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if status != 0 and self.needs is not None:
            raise CommandFailed("its login cannot be renewed")
        if status != 0:
            raise CommandFailed(f"headers_command: {self.command[0]} ended with {status}")
        return _read(output)


def _of_everybody() -> dict[str, str]:
    return {name: os.environ[name] for name in _OF_EVERYBODY if name in os.environ}


async def _to_end(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Return what comes until the end of a stream, `limit` bytes of it at most: one read
    gives what is there by now.
    """
    output = b""
    while len(output) < limit:
        chunk = await stream.read(limit - len(output))
        if not chunk:
            break
        output += chunk
    return output


def _secrets_in(headers: Mapping[str, str]) -> Iterator[str]:
    for value in headers.values():
        yield value
        yield value.rpartition(" ")[2]  # behind a scheme such as Bearer


def _read(output: bytes) -> _Printed:
    """Return the headers, which may also stand alone. No error repeats them."""
    wrong = (
        'headers_command: print {"headers": {"Authorization": "Bearer ..."}, "expires_in": 3600}'
    )
    try:
        value = json.loads(output)
        if not isinstance(value, dict) or "headers" not in value:
            value = {"headers": value}
        printed = _Printed.model_validate(value)
        check_headers(printed.headers)
    except ValidationError as error:
        place, problem = first_error(error)
        if "input" in problem:
            raise CommandFailed(wrong) from None
        raise CommandFailed(f"{wrong}: {place}: {problem}") from None
    except (ValueError, RecursionError):
        raise CommandFailed(wrong) from None
    return printed
