"""What each command does: one module each, with `run(args, terminal)` that returns an exit code."""
