"""Fusing: which short calls one activity runs together, and how many."""
