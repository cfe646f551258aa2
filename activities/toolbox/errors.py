"""The errors of tools: a ToolError when a call fails, a ToolSetupError when a worker
cannot offer its tools.

In a run the class name of a ToolError is the type of the error.
"""

from typing import Any, ClassVar

from sennit.activities.limits import MAX_MESSAGE_CHARACTERS, MAX_SAID_CHARACTERS
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.plan.language.text import both_ends


def _sentence(message: str, most: int = MAX_MESSAGE_CHARACTERS) -> str:
    """Return a message as people read it: of a long one the beginning and the end. Secrets go
    before it is cut, so that no half of one is left.
    """
    if len(message) > 8 * most:
        message = f"{message[: 4 * most]} [...] {message[-4 * most :]}"
    return both_ends(redact(message), most)


class ToolError(Exception):
    """One call failed for a reason that a person or a model can read.

    The message is one printable line of at most `longest` characters, without this worker's
    secrets. `retryable` says whether the same call may succeed later without any change,
    `retry_after` in how many seconds at the earliest. A tool that writes raises it only if nothing
    was written, or nothing that a second attempt would repeat. If it does not know it raises
    UnknownOutcome; any other exception counts as that.
    """

    longest: ClassVar[int] = MAX_MESSAGE_CHARACTERS

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(_sentence(message, self.longest))
        self.retryable = retryable
        self.retry_after = retry_after


class UnknownTool(ToolError):
    """No tool has that name; the message names the nearest one."""


class ToolArgumentError(ToolError):
    """The arguments do not fit the tool: `problem`, with the `field` that
    has it. Never retryable.
    """

    def __init__(self, problem: str, *, tool: str = "", field: str = "") -> None:
        parts = [part for part in (tool, field, problem) if part]
        super().__init__(": ".join(parts))
        self.field = field
        self.problem = _sentence(problem)


class ToolResultError(ToolError):
    """The tool returned a value that JSON cannot carry, such as NaN or an open file."""


class BadOutput(ToolError):
    """The tool returned a `value`, as JSON, that is not of the type it declares. Never
    retryable; a write was made.
    """

    def __init__(self, message: str, value: Any = None) -> None:
        super().__init__(message)
        self.value = value


class DocsNotFound(ToolError):
    """This worker does not see the folder of documents; the message names folder and worker."""


class PathRefused(ToolError):
    """A path leaves the folder of documents, is hidden, or is no regular file."""


class DocumentNotFound(ToolError):
    """Nothing has that path; the message names the nearest one that exists."""


class DocumentUnreadable(ToolError):
    """The file is not text, or the worker may not open it."""


class TooManyFiles(ToolError):
    """The folder holds more than a scan allows."""


class IndexUnusable(ToolError):
    """The search index can be neither read nor rebuilt (a full disk, a read-only cache)."""


class ExpressionRefused(ToolError):
    """`calculate` does not accept the expression; the message says which part and
    what to write instead.
    """


class CalculationFailed(ToolError):
    """The expression is well formed but has no finite real value within the bounds."""


class AddressRefused(ToolError):
    """The guard does not allow that address; nothing was sent to it."""


class FetchFailed(ToolError):
    """No complete answer came back: name, connection, time or protocol. `sent` when the
    request may have arrived.
    """

    def __init__(self, message: str, *, retryable: bool = False, sent: bool = False) -> None:
        super().__init__(message, retryable=retryable)
        self.sent = sent


class HttpStatusError(ToolError):
    """The server answered with an error status, kept in `status`; 429 and 5xx are retryable. The
    message ends with the beginning of the body, at most 2,048 characters.
    """

    longest = MAX_MESSAGE_CHARACTERS + MAX_SAID_CHARACTERS

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, retry_after=retry_after)
        self.status = status


class ContentRefused(ToolError):
    """The answer is not text, or has an encoding that is not supported."""


class McpUnavailable(ToolError):
    """An MCP server does not start, does not answer, or went away; nothing
    was written. Retryable.
    """


class McpToolFailed(ToolError):
    """An MCP server answers that its tool failed or that it refuses the call, with the text and the
    structured content of its answer. Never retryable; a write that was answered so is in no doubt.
    """

    longest = MAX_MESSAGE_CHARACTERS + MAX_SAID_CHARACTERS


class McpCredentialsRefused(ToolError):
    """An MCP server refuses the credentials of a call, and has done nothing. Never retryable."""


class McpToolChanged(ToolError):
    """An MCP server has changed a tool since the plan was checked. Nothing was called, and
    no second attempt helps.
    """


class A2aUnavailable(ToolError):
    """An agent cannot be reached, or is not what its card says; or its answer is lost, and the
    message may be repeated. No write has reached the agent. Retryable, unless its card is wrong.
    """


class A2aFailed(ToolError):
    """An agent refuses the message, or its task has failed, was rejected or was
    cancelled. Never retryable.
    """

    longest = MAX_MESSAGE_CHARACTERS + MAX_SAID_CHARACTERS


class A2aNeedsInput(ToolError):
    """An agent's task asks something and the call may not, or it waits for a login; the message has
    the question and the id of the task. Never retryable.
    """

    longest = MAX_MESSAGE_CHARACTERS + MAX_SAID_CHARACTERS


class A2aCredentialsRefused(ToolError):
    """An agent refuses the credentials of a call, and has done nothing. Never retryable."""


class UnknownOutcome(ToolError):
    """A write may have taken effect or not. Never retryable: a person has to check,
    and repeats or skips it.
    """

    longest = MAX_MESSAGE_CHARACTERS + MAX_SAID_CHARACTERS


class AlreadyWritten(ToolError):
    """This write was made already, with other arguments. Never retryable: a person
    repeats it, or skips it.
    """


class SandboxLimit(ToolError):
    """Code in the sandbox was stopped by one of its limits; the message names it."""


class SandboxFailed(ToolError):
    """The sandbox could not run the code, or how it ended is not known."""


class WorkspaceRefused(ToolError):
    """A folder cannot be kept as a workspace, or a value names none; the message
    says which file, or why.
    """


class ToolExit(Exception):
    """A tool ended by what is no error, such as SystemExit. What it had
    done by then is not known.
    """


class WorkerLost(Exception):
    """A tool ended the process that it ran in."""


class ToolSetupError(Exception):
    """A worker cannot offer its tools; the message is one line that names what to correct."""

    def __init__(self, message: str) -> None:
        super().__init__(_sentence(message))


class ToolDefinitionError(ToolSetupError):
    """`@tool` is misused; the message names the function and its module."""


class ToolModuleError(ToolSetupError):
    """A module of tools cannot be loaded; the message names the module and the reason."""
