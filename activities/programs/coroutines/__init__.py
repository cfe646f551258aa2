"""Coroutines of a script that run side by side in one session."""
