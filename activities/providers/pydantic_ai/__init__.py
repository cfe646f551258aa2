"""Models of the extra `pydantic-ai`. Only `provider` may be loaded where the
extra is not installed.
"""
