"""A tool that returns an image."""

from doubles.pictures import PNG
from pydantic import BaseModel

from sennit.activities.toolbox import MediaFile, tool

SHOTS: list[str] = []
"""The pages of all calls."""


class Shot(BaseModel):
    page: str
    images: list[MediaFile]


@tool(effect="read")
async def shoot(page: str) -> Shot:
    """Take a picture of a page."""
    SHOTS.append(page)
    return Shot(page=page, images=[MediaFile.of(PNG, "shot.png")])


@tool(effect="read")
async def shoot_badly(page: str) -> MediaFile:
    """Return what is no image."""
    return MediaFile.of(page.encode())
