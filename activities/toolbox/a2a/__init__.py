"""Agents of the A2A protocol as tools, through the official package, which
the extra `a2a` brings.
"""
