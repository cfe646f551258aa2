"""How a big plan travels: compact JSON, zlib, base64. Reading is bounded, so a small text cannot fill the memory."""

import base64
import binascii
import json
import zlib
from typing import Any

MAX_PACKED_BYTES = 1024 * 1024
MAX_UNPACKED_BYTES = 64 * 1024 * 1024


def pack_plan(plan: dict[str, Any]) -> str:
    """Return `plan` as text which `unpack_plan` reads back.

    Raises ValueError when the text is over 1 MiB, or when the plan is not JSON (NaN, a lone surrogate).
    """
    text = json.dumps(plan, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    if len(packed) > MAX_PACKED_BYTES:
        raise ValueError(
            f"the plan is {len(packed):,} bytes packed; at most {MAX_PACKED_BYTES:,} travel. "
            "Use a `map` node for many alike nodes, and put long texts in a document"
        )
    return packed


def unpack_plan(text: str) -> dict[str, Any]:
    """Return the plan in `text`. Raises ValueError for anything `pack_plan` does not write, or over 64 MiB unpacked."""
    if len(text) > MAX_PACKED_BYTES:
        raise ValueError(f"`plan_packed` is {len(text):,} characters; at most {MAX_PACKED_BYTES:,}")
    try:
        plan = json.loads(
            _inflate(base64.b64decode(text.encode("ascii", "replace"), validate=True)), parse_constant=_refuse
        )
    except (binascii.Error, zlib.error, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"`plan_packed` is not base64 of zlib of JSON: {error}") from None
    if not isinstance(plan, dict):
        raise ValueError("`plan_packed` holds no plan: a plan is a JSON object")
    return plan


def _inflate(packed: bytes) -> bytes:
    stream = zlib.decompressobj()
    body = stream.decompress(packed, MAX_UNPACKED_BYTES + 1)
    if len(body) > MAX_UNPACKED_BYTES:
        raise ValueError(f"`plan_packed` unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
    if not stream.eof or stream.unused_data:
        raise ValueError("`plan_packed` is cut off" if not stream.eof else "`plan_packed` has text after its end")
    return body


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
