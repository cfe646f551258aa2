"""Artifact stores for tests, each made as the local stack and `sennit setup --store` make them."""

from pathlib import Path
from typing import TypeVar

from sennit.activities.storage.directory import DirectoryStore

Store = TypeVar("Store", bound=DirectoryStore)


def made(store: Store) -> Store:
    """Create a store at its place, unless it is there, and return it."""
    store.create()
    return store


def store_in(place: Path) -> Path:
    """Create a store in a folder, unless it is there, and return the folder."""
    new_store(place)
    return place


def new_store(place: Path) -> DirectoryStore:
    """Create a store in a folder, unless it is there, and return it."""
    return made(DirectoryStore(place))
