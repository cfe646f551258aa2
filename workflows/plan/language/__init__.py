"""The plan language: nodes, references, conditions, facts, schemas and the
messages about mistakes.
"""
