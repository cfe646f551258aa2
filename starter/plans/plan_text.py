"""A plan as a file that people read and change, and that `sennit run` takes."""

from typing import Any

import yaml

from sennit.workflows.plan.language.nodes import Plan

_WIDTH = 100
_FIRST = ("id", "kind")
"""What a reader looks for in a node."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and every value in its own place."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if not text.replace("\n", "").isprintable():
        style = '"'  # with escapes
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def plan_text(plan: Plan) -> str:
    """Return a plan as YAML without what is so by default: read again, it is the same plan."""
    data = plan.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data["nodes"] = [_in_order(node) for node in data["nodes"]]
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _in_order(node: dict[str, Any]) -> dict[str, Any]:
    first = {name: node[name] for name in _FIRST if name in node}
    return {**first, **node}
