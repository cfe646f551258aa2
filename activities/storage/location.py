"""Where the artifact store is, as one setting says it: a folder, or a bucket."""

import re
from pathlib import Path

from sennit.activities.storage.artifacts import ArtifactStore, StoreUnavailable

_BUCKET = re.compile(r"s3://[A-Za-z0-9][A-Za-z0-9._-]+(/[A-Za-z0-9_=.-]*[A-Za-z0-9_=-])*")


def bucket_url(text: str) -> str:
    """Return the URL of a bucket and prefix without a slash at its end. Raises ValueError."""
    url = text.rstrip("/")
    if not _BUCKET.fullmatch(url):
        raise ValueError(
            "must be a folder, or s3://BUCKET/PREFIX; keys are read from AWS_* variables"
        )
    return url


def open_store(location: Path | str) -> ArtifactStore:
    """Return the store in a folder or at a `bucket_url`, which may not be there now:
    only a call finds out.

    Raises StoreUnavailable with what to do if variables or packages that a bucket needs are wrong.
    """
    if isinstance(location, Path):
        from sennit.activities.storage.directory import DirectoryStore

        return DirectoryStore(location)
    try:
        from sennit.activities.storage.s3 import S3Store
    except ModuleNotFoundError as missing:
        raise StoreUnavailable(
            f"a bucket needs sennit[s3]; {missing.name} is not installed"
        ) from None
    return S3Store(location)
