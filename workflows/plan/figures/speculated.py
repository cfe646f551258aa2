"""What speculation has come to in a run."""

from pydantic import Field

from sennit.workflows.plan.language.validation_messages import Frozen


class Speculated(Frozen):
    """The calls that a run made early, and what became of them."""

    calls: int = Field(default=0, description="calls made early")
    hits: int = Field(default=0, description="of these, calls whose output a real call has used")
    wasted: int = Field(default=0, description="the others")
    missed: int = Field(
        default=0, description="real calls that could have used one of these, and were another call"
    )
    saved_ms: int = Field(
        default=0, description="what the used calls took, less what the real calls still took"
    )
    accuracy: float | None = Field(default=None, description="hits by calls made early")


def speculated(calls: int, hits: int, missed: int, saved: int) -> Speculated | None:
    """Return what became of calls made early; None if there were none."""
    if not calls:
        return None
    return Speculated(
        calls=calls,
        hits=hits,
        wasted=calls - hits,
        missed=missed,
        saved_ms=saved,
        accuracy=round(hits / calls, 3),
    )
