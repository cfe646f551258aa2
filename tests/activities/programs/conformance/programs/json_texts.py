"""JSON: order of keys, separators, hooks, own encoders, errors with places."""
import json
from datetime import date
from decimal import Decimal


class Encoder(json.JSONEncoder):
    def default(self, value):
        if isinstance(value, set):
            return sorted(value)
        return super().default(value)


async def main():
    data = {"b": [1, 2.0, None], "a": {"é": True}}
    try:
        json.loads('{"a": 1,\n "b": }')
    except json.JSONDecodeError as error:
        place = [error.msg, error.lineno, error.colno]
    try:
        json.dumps({"day": date(2026, 1, 1)})
    except TypeError as error:
        refused = str(error)
    return [
        json.dumps(data),
        json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False),
        json.dumps({1: "a", None: "b", True: "c"}, separators=(",", ":")),
        str(json.loads("1.10", parse_float=Decimal)),
        json.loads('{"x": 1, "x": 2}', object_pairs_hook=list),
        json.dumps({"s": {3, 1}}, cls=Encoder),
        place,
        refused,
        json.dumps("\ud83d\ude00 \u2028"),
    ]
