"""The numbered lines that planners write, read while they arrive."""
