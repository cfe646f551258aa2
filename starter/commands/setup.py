"""`weft setup`: create the search attributes that a namespace lacks."""

import argparse
from collections.abc import Mapping

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from starter.client import Weft
from starter.dev.server import SEARCH_ATTRIBUTES
from starter.exits import Exit, Refused
from starter.faults import meaning
from starter.launch import connect
from starter.terminal import Terminal


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Create what is missing and say what was done; running it again changes nothing."""
    weft = await connect(args, terminal)
    there = await _attributes(weft)
    wrong = mistyped(there)
    if wrong:
        raise Refused(f"search attributes of another type are in the way: {', '.join(wrong)}; see docs of your server")
    missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in there}
    if missing:
        await _create(weft, missing)
    if terminal.output in ("json", "jsonl"):
        terminal.answer_json({"namespace": weft.place.namespace, "created": list(missing), "kept": _kept(missing)})
    else:
        terminal.answer(told(weft.place.namespace, missing))
    return Exit.ANSWER


def told(namespace: str, missing: Mapping[str, str]) -> str:
    """Return what was done, a line for each kind of thing."""
    lines = []
    if missing:
        lines.append(f"created in {namespace}: " + ", ".join(f"{name} ({kind})" for name, kind in missing.items()))
    if _kept(missing):
        lines.append(f"already in {namespace}: " + ", ".join(_kept(missing)))
    return "\n".join(lines)


def mistyped(there: Mapping[str, int]) -> list[str]:
    """Return those of our attributes that exist with another type."""
    return [
        f"{name} should be {kind}"
        for name, kind in SEARCH_ATTRIBUTES.items()
        if name in there and there[name] != _value_type(kind)
    ]


def _kept(missing: Mapping[str, str]) -> list[str]:
    return [name for name in SEARCH_ATTRIBUTES if name not in missing]


def _value_type(kind: str) -> IndexedValueType.ValueType:
    return IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")


async def _attributes(weft: Weft) -> Mapping[str, int]:
    request = ListSearchAttributesRequest(namespace=weft.place.namespace)
    try:
        return (await weft.client.operator_service.list_search_attributes(request)).custom_attributes
    except RPCError as error:
        raise _no_operator(weft.client, error) or meaning(error) from None


async def _create(weft: Weft, missing: Mapping[str, str]) -> None:
    kinds = {name: _value_type(kind) for name, kind in missing.items()}
    request = AddSearchAttributesRequest(namespace=weft.place.namespace, search_attributes=kinds)
    try:
        await weft.client.operator_service.add_search_attributes(request)
    except RPCError as error:
        raise _no_operator(weft.client, error) or meaning(error) from None


def _no_operator(client: Client, error: RPCError) -> Refused | None:
    """Return what to do where attributes can only be made by other means, as on Temporal Cloud."""
    if error.status not in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
        return None
    wanted = ", ".join(f"{name} ({kind})" for name, kind in SEARCH_ATTRIBUTES.items())
    return Refused(f"this server lets no client create search attributes; have {client.namespace} given {wanted}")
