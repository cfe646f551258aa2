"""Units whose calls one activity makes."""

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Batch:
    """The units that run in one activity, in the order in which they have joined it.

    A unit leaves when its end is counted. It may start again before the others have ended, in
    another activity.
    """

    members: dict[int, None] = field(default_factory=dict)
