"""The driver of one run: it carries out what the scheduler decides."""
