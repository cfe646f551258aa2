"""The one digest of a call's bound arguments: what a person approves is what the effect ledger says was written."""

import json
from collections.abc import Mapping
from typing import Any

from activities.storage.artifacts import digest_of


def arguments_digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what names a call by its tool and values; equal values have equal digests, whatever their order."""
    return digest_of(json.dumps([tool, arguments], sort_keys=True, separators=(",", ":")).encode())
