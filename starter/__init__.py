"""The client: a library for programs that embed Sennit, and the `sennit` command."""

if not __name__.startswith("sennit."):
    raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
