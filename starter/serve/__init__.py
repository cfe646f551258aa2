"""Sennit as a server for agents: what they may do with runs, and the Model
Context Protocol around it.
"""
