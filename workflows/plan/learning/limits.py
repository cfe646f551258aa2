"""What is kept of earlier runs is bounded here: they are many, and what they teach is little."""

from typing import Final

MAX_NOTED_CALLS: Final = 500  # of one run: its first ones, in the order in which they began
MAX_SOURCES: Final = 24  # of the values in the arguments of one call
# Of what is kept of one run: 500 calls take a third of it.
MAX_TRAJECTORY_BYTES: Final = 1024 * 1024
# Of the patterns of one tenant: a worker reads them to plan.
MAX_TABLE_BYTES: Final = 8 * 1024 * 1024
# Tools and roles of one run that are paired with each other: its first ones.
MAX_TOOLS_OF_RUN: Final = 60
MAX_PAIRS: Final = 4_000  # of tools and roles, in one table: those stay that were seen most
MAX_MAPPINGS: Final = 8  # of one pair
MAX_MAPPING_CHARACTERS: Final = 400  # of one mapping
MAX_TOOLS: Final = 4_000  # of one table, with each version of their schemas
MAX_PLANS: Final = 400  # shapes of plans in one table, the latest
MAX_PLAN_LINES: Final = 60  # of one shape: a longer plan is no example
MAX_SHAPE_CHARACTERS: Final = 200  # of one line of a shape
MAX_GOAL_WORDS: Final = 32  # of one goal, as marks
# Names of runs that a table knows to be in it, while their objects are deleted.
MAX_FOLDED: Final = 20_000
MAX_SHOWN_PLANS: Final = 3  # of earlier runs that a planner reads
