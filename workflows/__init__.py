"""Deterministic code: the AgentRun workflow and all that may run inside it.

Nothing here reads a clock, a random number or the order of a set, and nothing does I/O: Temporal
runs this code again when it replays a history. Time is the workflow's. Activities do all I/O.
"""

if not __name__.startswith("sennit."):
    raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
