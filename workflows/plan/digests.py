"""How an output is referred to: by the digest of its body, followed by the name of its
marker if it lies in that.
"""

import re

DIGEST_CHARACTERS = 40
REFERENCE = r"[0-9a-f]{40}(?:\.[0-9a-f]{40})?"
"""The form of a reference. What has another one is no name in a store, and
may be a path out of it.
"""
_IN_MARKER = re.compile(r'("[0-9a-f]{40})\.[0-9a-f]{40}(?=")')


def digest_in(reference: str) -> str:
    """Return the digest of the body: equal outputs have equal ones, wherever they lie. Of a
    manifest, it with digests for references.
    """
    if reference.startswith(("[", "{")):
        return _IN_MARKER.sub(r"\1", reference)
    return reference[:DIGEST_CHARACTERS]
