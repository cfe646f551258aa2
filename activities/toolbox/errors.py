"""What can go wrong with a tool: a ToolError when one call fails, a ToolSetupError when a worker starts.

In a run the class name of a ToolError is the error's type.
"""

from typing import Final

from workflows.plan.language.text import one_line

LONGEST_MESSAGE: Final = 500


class ToolError(Exception):
    """One call failed for a reason that a person or a model can read.

    The message is one printable line of at most 500 characters. `retryable` says whether the same call may
    succeed later without anybody changing anything, `retry_after` in how many seconds at the earliest. Raised by a
    tool that writes, it says that nothing was written, or nothing that a second attempt would repeat; a tool that
    does not know raises UnknownOutcome, and any other exception counts as that.
    """

    def __init__(self, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(one_line(message, LONGEST_MESSAGE))
        self.retryable = retryable
        self.retry_after = retry_after


class UnknownTool(ToolError):
    """No tool has that name; the message names the nearest one."""


class ToolArgumentError(ToolError):
    """The arguments do not fit the tool; `field` and `problem` say where and why. Never retryable."""

    def __init__(self, message: str, *, field: str = "", problem: str = "") -> None:
        super().__init__(message)
        self.field = field
        self.problem = one_line(problem or message, LONGEST_MESSAGE)


class ToolResultError(ToolError):
    """The tool returned a value that JSON cannot carry, such as NaN or an open file."""


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
    """`calculate` does not accept the expression; the message says which part and what to write instead."""


class CalculationFailed(ToolError):
    """The expression is well formed but has no finite real value within the bounds."""


class AddressRefused(ToolError):
    """The guard does not allow that address; nothing was sent to it."""


class FetchFailed(ToolError):
    """No complete answer came back: name, connection, time or protocol. `sent` when the request may have arrived."""

    def __init__(self, message: str, *, retryable: bool = False, sent: bool = False) -> None:
        super().__init__(message, retryable=retryable)
        self.sent = sent


class HttpStatusError(ToolError):
    """The server answered with an error status, kept in `status`; 429 and 5xx are retryable."""

    def __init__(
        self, message: str, *, status: int = 0, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retryable=retryable, retry_after=retry_after)
        self.status = status


class ContentRefused(ToolError):
    """The answer is not text, or is encoded in a way that is not read."""


class McpUnavailable(ToolError):
    """An MCP server does not start, does not answer, or went away; nothing was done that matters. Retryable."""


class McpToolFailed(ToolError):
    """An MCP server says that its tool failed, or that it does not take such a call."""


class UnknownOutcome(ToolError):
    """A write may have taken effect, and nobody knows. Never retryable: a person looks, and repeats or skips it."""


class SandboxLimit(ToolError):
    """Confined code was stopped by one of its limits; the message names it."""


class SandboxFailed(ToolError):
    """Code could not be run in the sandbox, and so was not run at all or has no known end."""


class ToolSetupError(Exception):
    """A worker cannot offer its tools; the message is one line and names what to correct."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, LONGEST_MESSAGE))


class ToolDefinitionError(ToolSetupError):
    """`@tool` is misused; the message names the function and its module."""


class ToolModuleError(ToolSetupError):
    """A module of tools cannot be loaded; the message names the module and the reason."""
