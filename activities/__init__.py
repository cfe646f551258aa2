"""All I/O: preparing a run, model calls, tool calls, artifacts."""
