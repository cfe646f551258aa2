"""All I/O: preparing a run, model calls, tool calls, artifacts."""

if not __name__.startswith("sennit."):
    raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
