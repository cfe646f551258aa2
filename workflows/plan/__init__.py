"""The pure core: the plan language, its checks, and the scheduler. Standard
library and pydantic only.
"""
