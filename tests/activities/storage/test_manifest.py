"""What a reference stands for: an output, or what a join has gathered; and nothing outside of the store."""

import asyncio
import json
from typing import Any

import pytest

from sennit.activities.programs.values import Ref, packed
from sennit.activities.storage.artifacts import BodyMissing
from sennit.activities.storage.manifest import AT_ONCE, value_of

A, B, C = "a" * 40, "b" * 40, "c" * 40
FALSE = {"__ref__": "a" * 40, "size": 5}
TRUE = Ref("b" * 40, 7)
STORED = {A: FALSE, B: packed([TRUE, FALSE]), C: None}


async def stored(digest: str) -> Any:
    return STORED[digest]


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        (C, None),
        ("[]", []),
        (json.dumps([C, [C, [C]]]), [None, [None, [None]]]),
        (
            json.dumps([{"id": "x", "value": C}, {"id": "y", "status": "failed", "error": "Boom: it broke"}]),
            [
                {"id": "x", "status": "succeeded", "value": None, "error": None},
                {"id": "y", "status": "failed", "value": None, "error": "Boom: it broke"},
            ],
        ),
        (json.dumps([C] * 200), [None] * 200),
    ],
    ids=["an output", "no value", "joins of joins", "ends", "many"],
)
async def test_a_manifest_reads_as_what_the_join_has_gathered(reference: str, value: Any) -> None:
    assert await value_of(reference, stored) == value


@pytest.mark.parametrize(
    "reference", ["[", "[1]", '["../../etc/passwd"]', '[{"value": "x/y"}]', '[{"id": "x", "value": ""}]', "[" * 9_000]
)
async def test_what_is_no_digest_is_never_looked_for(reference: str) -> None:
    with pytest.raises(BodyMissing, match="is no"):
        await value_of(reference, stored)


async def test_however_lists_lie_in_each_other_few_outputs_are_read_at_once() -> None:
    reading = most = 0

    async def read(_: str) -> None:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await asyncio.sleep(0)
        reading -= 1

    assert await value_of(json.dumps([[[C] * 20] * 20] * 20), read) == [[[None] * 20] * 20] * 20
    assert most == AT_ONCE


async def test_a_manifest_deeper_than_a_run_makes_it_is_no_reference() -> None:
    for levels in (500, 900):
        with pytest.raises(BodyMissing, match="levels"):
            await value_of('{"value":' * levels + f'"{C}"' + "}" * levels, stored)
