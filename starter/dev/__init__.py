"""The local stack: a Temporal dev server and workers on this machine, found or built,
started, watched and stopped.
"""
