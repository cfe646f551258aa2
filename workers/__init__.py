"""Worker processes: roles, settings, telemetry, health, and `python -m sennit.workers ROLE`."""

if not __name__.startswith("sennit."):
    raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
