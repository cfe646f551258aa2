"""How a big plan travels: compact JSON, zlib, base64.

A small text cannot fill the memory: it is inflated to a bound, and its values are counted
before they are parsed.
"""

import base64
import binascii
import json
import zlib
from typing import Any

from sennit.workflows.plan.limits import MAX_PACKED_BYTES, MAX_PACKED_VALUES, MAX_UNPACKED_BYTES


def pack_plan(plan: dict[str, Any]) -> str:
    """Return `plan` as text which `unpack_plan` reads back.

    Raises ValueError when the text is over 1 MiB, or when the plan is not JSON
    (NaN, a lone surrogate).
    """
    text = json.dumps(plan, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    compressed = zlib.compress(text.encode(), 9)
    packed = base64.b64encode(compressed).decode()
    if len(packed) > MAX_PACKED_BYTES:
        raise ValueError(
            f"the plan is {len(packed):,} bytes packed; at most {MAX_PACKED_BYTES:,} travel. "
            "Use a `map` node for many alike nodes, and put long texts in a document"
        )
    return packed


def unpack_plan(text: str) -> dict[str, Any]:
    """Return the plan in `text`. Raises ValueError for anything `pack_plan` does not write, or over
    16 MiB or 500,000 values unpacked.
    """
    if len(text) > MAX_PACKED_BYTES:
        raise ValueError(f"`plan_packed` is {len(text):,} characters; at most {MAX_PACKED_BYTES:,}")
    try:
        packed = base64.b64decode(text.encode("ascii", "replace"), validate=True)
        body = inflate(packed, MAX_UNPACKED_BYTES)
        signs = sum(map(body.count, (b",", b"[", b"{")))  # those in texts too
        if 1 + signs > MAX_PACKED_VALUES:
            raise ValueError(
                f"holds over {MAX_PACKED_VALUES:,} values; use a `map` node for many alike nodes"
            )
        plan = json.loads(body, parse_constant=_refuse)
    except (
        binascii.Error,
        zlib.error,
        UnicodeDecodeError,
        json.JSONDecodeError,
        RecursionError,
    ) as error:
        raise ValueError(f"`plan_packed` is not base64 of zlib of JSON: {error}") from None
    except ValueError as error:
        raise ValueError(f"`plan_packed` {error}") from None
    if not isinstance(plan, dict):
        raise ValueError("`plan_packed` holds no plan: a plan is a JSON object")
    return plan


def pack(value: Any) -> str:
    """Return a JSON value as compressed text, which `unpack` reads back: what
    only Sennit itself reads.
    """
    text = json.dumps(value, separators=(",", ":"))
    compressed = zlib.compress(text.encode(), 9)
    return base64.b85encode(compressed).decode()


def unpack(text: str, most: int) -> Any:
    """Return the value in a text. Raises ValueError, or zlib.error, before more than
    `most` bytes are unpacked.
    """
    return json.loads(inflate(base64.b85decode(text), most))


def inflate(packed: bytes, most: int) -> bytes:
    """Return what zlib has packed; never more than `most` bytes of it are in memory. Raises
    ValueError, zlib.error.
    """
    stream = zlib.decompressobj()
    body = stream.decompress(packed, most + 1)
    if len(body) > most:
        raise ValueError(f"unpacks to more than {most:,} bytes")
    if not stream.eof:
        raise ValueError("is cut off")
    if stream.unused_data:
        raise ValueError("has text after its end")
    return body


def _refuse(constant: str) -> None:
    raise ValueError(f"holds {constant}, which is not JSON")
