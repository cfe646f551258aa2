"""What is kept outside Temporal: artifacts, markers, and the context of each run."""
