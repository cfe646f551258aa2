"""Deterministic code: the AgentRun workflow and all that may run inside it."""

if not __name__.startswith("sennit."):
    raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
