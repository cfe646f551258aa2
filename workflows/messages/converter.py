"""How every process of Sennit reaches Temporal and writes payloads. Never used by workflow code."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.exceptions import ApplicationError

from sennit.workflows.messages.contracts import CALLS
from sennit.workflows.messages.request import Unreadable
from sennit.workflows.messages.updates import InvalidUpdate
from sennit.workflows.plan.language.text import one_line

CONNECT_SECONDS = 10.0
_TLS = re.compile(r"kind: InvalidData, error: (Invalid\w+\(\w+)")
_QUOTED = re.compile(r'(?:message|error): \\?"((?:[^"\\]|\\.)+?)\\?"')
_RESULTS = {call.gives for call in CALLS}


class _LeanPayloads(PydanticPayloadConverter):
    """Leaves out fields nobody set: history is paid for by the byte.

    What cannot be read is `Unreadable` where people may have sent it to a run: where no type is
    expected, and in the place of a result of an activity. Left to the SDK, the run would fail the
    same workflow task for ever.
    """

    def __init__(self) -> None:
        super().__init__(ToJsonOptions(exclude_unset=True))

    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: list[type] | None = None
    ) -> list[Any]:
        if type_hints is None:
            return [self._read(payload) for payload in payloads]
        if len(payloads) == 1 and type_hints and type_hints[0] in _RESULTS:
            return [self._read(payloads[0], type_hints)]
        return super().from_payloads(payloads, type_hints)

    def _read(self, payload: Payload, type_hints: list[type] | None = None) -> Any:
        try:
            return super().from_payloads([payload], type_hints)[0]
        except (RuntimeError, KeyError, ValueError):
            return Unreadable()


class StackedError(ApplicationError):
    """An expected error with frames that people may see: those of a tool's own code."""

    def __init__(self, message: str, *details: Any, stack: str, **options: Any) -> None:
        super().__init__(message, *details, **options)
        self.stack = stack


class _ExpectedFailures(DefaultFailureConverter):
    """Leaves tracebacks out of expected errors: the UI shows them to whoever sent a wrong update.

    A defect keeps its traceback. Exceptions are recognised by name: in workflow code they come from
    inside the sandbox, where the same class is another object.
    """

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        super().to_failure(exception, payload_converter, failure)
        if (
            isinstance(exception, ApplicationError)
            or type(exception).__name__ == InvalidUpdate.__name__
        ):
            failure.stack_trace = exception.stack if isinstance(exception, StackedError) else ""


DATA_CONVERTER = DataConverter(
    payload_converter_class=_LeanPayloads, failure_converter_class=_ExpectedFailures
)


def connection_settings() -> ClientConnectConfig:
    """Return the connection that TEMPORAL_* variables and the profile file say. Raises
    ValueError with a sentence.
    """
    try:
        return ClientConfig.load_client_connect_config()
    except (OSError, RuntimeError, ValueError) as problem:  # OSError: a file of certificates
        why = one_line(str(problem), 200)
        raise ValueError(f"the settings of the Temporal connection are wrong: {why}") from None


async def connect(
    address: str | None = None,
    *,
    config: ClientConnectConfig | None = None,
    identity: str | None = None,
) -> Client:
    """Connect with this configuration, else as the `temporal` command would: flag, TEMPORAL_*
    variables, profile file, then localhost:7233.

    Raises RuntimeError or TimeoutError when the server cannot be reached within ten seconds, and
    ValueError for an address that no server can have; `cause_of` says why.
    """
    config = connection_settings() if config is None else config
    if address:
        config["target_host"] = address
    config.setdefault("target_host", "localhost:7233")
    connecting = Client.connect(**config, data_converter=DATA_CONVERTER, identity=identity)
    return await asyncio.wait_for(connecting, CONNECT_SECONDS)


def cause_of(problem: BaseException) -> str:
    """Return in a few words why the SDK failed; its own messages are dumps of nested errors."""
    if isinstance(problem, TimeoutError):
        return f"no answer within {CONNECT_SECONDS:.0f} s"
    if tls := _TLS.search(str(problem)):
        return f"TLS failed: {tls[1]})"
    found = _QUOTED.findall(str(problem))
    return found[-1] if found else f"{type(problem).__name__}: {problem}"[:300]
