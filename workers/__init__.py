"""Worker processes: roles, settings, telemetry, health, and `python -m workers ROLE`."""
