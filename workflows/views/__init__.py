"""The run as people read it: the report, and the board of the web UI."""
