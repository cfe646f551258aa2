"""Programs: scripts in Python whose calls become nodes."""
