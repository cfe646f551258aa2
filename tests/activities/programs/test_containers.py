"""What lists, sets, types and keys do in a script is what they do in CPython."""

import asyncio
import json
from typing import Any

import pytest

from sennit.testing import run_async
from sennit.workflows.plan.programs.syntax import problems_in

SAME = [
    'found = []; found += {"a": 1}.keys(); found += map(str, [1]); found += range(2); found += (3,); return found',
    "found = []; same = found; found += (each for each in [1, 2]); return same",
    'found = {"a": []}; found["a"] += (1,); return found',
    "found = (1,); found += (2,); return found",
    "sets = [{1, 2}, {2, 3}]; return sorted(set.intersection(*sets)), sorted(set().union(*sets)), set.union({1})=={1}",
    "return sorted({1, 2}.intersection([2], {2})), sorted({1, 2, 3}.difference([1], [2])), sorted({1}.union())",
    'return (1).__class__.__name__, f"{ValueError().__class__.__name__}"',
    'return {1: "a", 2.5: [{True: None}], None: {"z": 1, "a": {3: 4}}}',
    "from typing import Callable, Dict; Made = Callable[[str], Dict[str, int]]; Rows = Dict[str, Made]; return 1",
    'found = {"a": 1}; return max(["a"], key=(found or {}).get), ({1} or {2}).union({3}, {4}) == {1, 3, 4}',
    "found = []; found += (map(str, [1])); return found, (found or [2]).__class__.__name__",
    "import typing as t; Rows = t.List[t.Dict[str, t.Any]]; return 2",
]


@pytest.mark.parametrize("body", SAME)
async def test_a_script_gives_what_cpython_gives(body: str) -> None:
    script = f"async def main():\n    {body.replace('; ', chr(10) + '    ')}\n"
    there: dict[str, Any] = {}
    exec(script, there)
    assert problems_in(script, {}) == []
    expected = await asyncio.create_task(there["main"]())
    assert json.dumps(await run_async(script, {})) == json.dumps(expected)


async def test_keys_of_a_tasks_argument_are_texts() -> None:
    script = "async def one(found: dict):\n    return 1\nasync def main():\n    return await task(one, found={1: 2})\n"
    with pytest.raises(TypeError, match="the keys of a dict are texts"):
        await run_async(script, {})
