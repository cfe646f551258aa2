"""Durable, parallel agent workflows on Temporal.

    from sennit import Sennit, tool

Importing this package imports nothing else. The workflow sandbox imports it for every run
anew, and the sandbox of untrusted code, where no other package is at hand. So a name is
imported when it is first used.
"""

# Type checkers take this name as true; importing `typing` for it would take longer than all else.
TYPE_CHECKING = False

__all__ = [
    "InvalidRequest",
    "MediaFile",
    "NoAnswer",
    "NoOutput",
    "NoResult",
    "NotAllowed",
    "NotEnded",
    "Preview",
    "Refused",
    "Run",
    "RunEvent",
    "RunInput",
    "RunIsOver",
    "RunNotFound",
    "RunReport",
    "RunSummary",
    "Sennit",
    "SennitError",
    "ServerUnreachable",
    "ToolContext",
    "ToolError",
    "Workspace",
    "documents_root",
    "open_inside",
    "run_child",
    "tool",
]

if TYPE_CHECKING:
    from sennit.activities.toolbox import (
        MediaFile,
        Preview,
        ToolContext,
        ToolError,
        Workspace,
        documents_root,
        open_inside,
        tool,
    )
    from sennit.starter.client.client import Sennit
    from sennit.starter.client.errors import (
        InvalidRequest,
        NoAnswer,
        NoOutput,
        NoResult,
        NotAllowed,
        NotEnded,
        Refused,
        RunIsOver,
        RunNotFound,
        SennitError,
        ServerUnreachable,
    )
    from sennit.starter.client.run import Run
    from sennit.starter.client.runs import RunSummary
    from sennit.workflows.child import run_child
    from sennit.workflows.messages.request import RunInput
    from sennit.workflows.messages.result import RunReport
    from sennit.workflows.messages.views import RunEvent
else:
    _HOMES = {
        "InvalidRequest": "sennit.starter.client.errors",
        "NoAnswer": "sennit.starter.client.errors",
        "NoOutput": "sennit.starter.client.errors",
        "NotEnded": "sennit.starter.client.errors",
        "NoResult": "sennit.starter.client.errors",
        "NotAllowed": "sennit.starter.client.errors",
        "Refused": "sennit.starter.client.errors",
        "Run": "sennit.starter.client.run",
        "RunEvent": "sennit.workflows.messages.views",
        "RunIsOver": "sennit.starter.client.errors",
        "RunInput": "sennit.workflows.messages.request",
        "RunNotFound": "sennit.starter.client.errors",
        "RunReport": "sennit.workflows.messages.result",
        "RunSummary": "sennit.starter.client.runs",
        "Sennit": "sennit.starter.client.client",
        "SennitError": "sennit.starter.client.errors",
        "run_child": "sennit.workflows.child",
        "ServerUnreachable": "sennit.starter.client.errors",
    }

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES.get(name, "sennit.activities.toolbox")), name)

    def __dir__():
        return sorted({*globals(), *__all__})
