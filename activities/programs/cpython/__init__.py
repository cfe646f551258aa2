"""What runs in the process of a script: CPython, with a loop, a clock and random numbers
that a replay repeats.
"""
