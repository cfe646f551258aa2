"""The local Temporal server with its workers: found or built, started, watched, stopped."""
