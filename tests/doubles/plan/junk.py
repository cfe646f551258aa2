"""Data that is almost JSON, and damage to data that was right."""

import copy
import random
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

WEIRD_TEXTS = (
    "",
    " ",
    "a",
    "$a",
    "${a.b[0]}",
    "${",
    "$$",
    "$input",
    "$goal.x",
    "3",
    "60%",
    "²%",
    "30s",
    "0s",
    "a/../b",
    "a\nb",
    "\x00",
    "\u202eabc",
    "\ud800",
    "😀" * 50,
    "x" * 5_000,
    "tool",
    "fail",
)
WEIRD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    3,
    10**400,
    -(10**5_000),
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    *WEIRD_TEXTS,
    [],
    {},
    [[]],
    ["a", "a"],
    [None],
    {"": None},
    {"fallback": 1},
    {"instead": "a"},
    {"instead": "b", "fallback": 1},
    {"quorum": 3},
    {"and": []},
    {"not": {"not": {"ref": "$a", "op": "exists"}}},
    {"ref": "$a:status", "op": "eq", "value": "done"},
    {"ref": "$a.count", "op": "gt", "value": "3"},
    {"type": "string"},
    {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
    {"properties": [1]},
    {1: 2},
    b"bytes",
    ("a", "b"),
    {1, 2},
)

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(400, 5_000).map(lambda digits: -(10**digits))
    | st.floats()
    | st.text(max_size=10)
    | st.text(st.characters(categories=["Cs", "Cc", "Cf"]), max_size=3)
    | st.sampled_from(["nodes", "id", "kind", "tool", "llm", "map", "join", "gate", "a", "$a", "30s"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(max_size=5)
            | st.sampled_from(
                ["nodes", "id", "kind", "tool", "args", "needs", "when", "on_error", "do", "over", "inputs", "policy"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


def places(data: Any, path: Path = ()) -> list[Path]:
    """Return the path of every part of a value, its own left out."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found: list[Path] = []
    for key, item in parts:
        found.append((*path, key))
        found += places(item, (*path, key))
    return found


def part_at(data: Any, path: Path) -> Any:
    """Return the part at a path. Raises LookupError or TypeError when the path leads nowhere."""
    for key in path:
        data = data[key]
    return data


def damage(data: Any, chance: random.Random) -> None:
    """Change one part in place: delete it, replace it, double it, rename it, or put another part there."""
    every = places(data)
    if not every:
        return
    path = chance.choice(every)
    holder: Any = part_at(data, path[:-1])
    key: Any = path[-1]
    how = chance.randrange(6)
    if how == 0:
        del holder[key]
    elif how in (1, 2):
        holder[key] = copy.deepcopy(chance.choice(WEIRD))
    elif how == 3:
        holder[key] = copy.deepcopy(part_at(data, chance.choice(every)))
    elif isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    elif how == 4:
        name = chance.choice([*(step for other in every for step in other if isinstance(step, str)), "extra", "\ud800"])
        holder[name] = holder.pop(key) if chance.random() < 0.5 else holder[key]
    else:
        holder[key] = [holder[key]]
