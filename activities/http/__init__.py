"""HTTP with everything bounded: where a request may go, how long it takes,
how many bytes it brings.
"""
