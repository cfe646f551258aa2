"""Endpoints from a document of OpenAPI 3, in JSON: an operation is a tool called `name_operation`."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from pydantic import AfterValidator, Field, ValidationError

from sennit.activities.http.client import Request
from sennit.activities.http.download import exchange
from sennit.activities.limits import MAX_MESSAGE_CHARACTERS, MAX_OPENAPI_BYTES, MAX_OPENAPI_OPERATIONS
from sennit.activities.toolbox.configuration import Resource, Strict, flaw_of, is_deep, without_credentials
from sennit.activities.toolbox.definition import NAME, Effect
from sennit.activities.toolbox.errors import ToolError, ToolSetupError
from sennit.activities.toolbox.http.endpoints import Endpoint
from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.limits import Duration
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import nearest_or_known, one_line, printable
from sennit.workflows.plan.language.validation_messages import first_error

BODY: Final = "body"
_SECONDS: Final = 20.0
_METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
_READS: Final = ("get", "head")
_BODILESS: Final = ("get", "head", "delete")
_SCHEMAS: Final = "#/components/schemas/"
_SLOT: Final = re.compile(r"\{([^{}]*)\}")
_ODD: Final = re.compile(r"\W", re.ASCII)
_IGNORED_HEADERS: Final = ("accept", "content-type", "authorization")
"""Parameters that OpenAPI itself says are to be ignored."""


class Source(Strict):
    """A document, by URL or by its path beside the file that declares it, and which of its operations are tools.

    `operations` are patterns of an operation's id, or of its method and path such as `GET /tickets/*`. GET and HEAD
    read, anything else writes, unless `effects` says otherwise. `url` is where the server is, if the document is not to
    say it. The other fields are those of every endpoint.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]
    document: Annotated[str, Field(min_length=1), AfterValidator(without_credentials)]
    operations: tuple[str, ...] = ("*",)
    effects: dict[str, Effect] = Field(default_factory=dict)
    url: (
        Annotated[str, Field(pattern=r"^https?://[^/?#{}]+(/[^?#{}]*)?$"), AfterValidator(without_credentials)] | None
    ) = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: Duration = 30.0
    max_bytes: Annotated[int, Field(ge=1, le=8_000_000)] = 1_000_000
    idempotency_header: str | None = None
    resources: dict[str, Resource] = Field(default_factory=dict)


class _Unfit(Exception):
    """Why an operation cannot be a tool."""


def read_source(source: Source, folder: Path) -> tuple[list[Endpoint], dict[str, str]]:
    """Return an endpoint for each chosen operation, and by the tool's name why others cannot be one.

    Raises ToolSetupError naming the document, or the pattern that fits no operation.
    """
    document = _Document(source, folder)
    chosen = [each for each in document.operations() if any(each.fits(pattern) for pattern in source.operations)]
    for where, patterns in (
        ("operations", source.operations),
        ("effects", source.effects),
        ("resources", source.resources),
    ):
        known = chosen
        if where == "operations":
            known = list(document.operations())
        for pattern in patterns:
            if not any(each.fits(pattern) for each in known):
                near = nearest_or_known(pattern, [each.key for each in known])
                raise ToolSetupError(f"openapi.{source.name}.{where}: no operation fits {pattern!r}{near}")
    if len(chosen) > MAX_OPENAPI_OPERATIONS:
        raise ToolSetupError(
            f"openapi.{source.name}: {len(chosen)} operations are too many tools; choose some under `operations`"
        )
    names = Counter(each.name for each in chosen)
    endpoints, left_out = [], {}
    for each in chosen:
        try:
            if names[each.name] > 1:
                raise _Unfit(f"{names[each.name]} operations would be called that")
            endpoints.append(document.endpoint(each))
        except _Unfit as reason:
            left_out[printable(each.name, 80)] = one_line(str(reason), MAX_MESSAGE_CHARACTERS)
    return endpoints, left_out


class _Operation:
    """An operation as the document has it: `key` is its id, or its method and path."""

    def __init__(
        self, source: str, method: str, path: str, item: Mapping[str, Any], definition: Mapping[str, Any]
    ) -> None:
        self.method, self.path, self.item, self.definition = method, path, item, definition
        self.call = f"{method.upper()} {path}"
        identifier = definition.get("operationId")
        self.key = identifier if isinstance(identifier, str) else self.call
        words = (
            _ODD.sub("_", identifier) if isinstance(identifier, str) else "_".join((method, *re.findall(r"\w+", path)))
        )
        self.name = f"{source}_{words}"

    def fits(self, pattern: str) -> bool:
        return fnmatchcase(self.key, pattern) or fnmatchcase(self.call, pattern)


@dataclass(frozen=True, slots=True)
class _Definition:
    """A schema that operations share, as plans have it; the names of those that it refers to; and why no tool can have
    it, if that is so.
    """

    schema: Any
    references: tuple[str, ...]
    problem: str


class _Document:
    """A document that has been read, and what it is a source of."""

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._is_remote = source.document.startswith(("http://", "https://"))
        self._data = _parsed(source, self._fetch() if self._is_remote else _read(source, folder))
        self._definitions: dict[str, _Definition] = {}

    def _fetch(self) -> bytes:
        async def fetch() -> bytes:
            async with asyncio.timeout(_SECONDS):
                answer = await exchange(Request("GET", self._source.document), MAX_OPENAPI_BYTES)
            if answer.status != 200:
                raise _wrong(self._source, f"the server answers {answer.status}, {answer.location or 'without it'}")
            return b"" if answer.truncated else answer.body

        try:
            return asyncio.run(fetch())
        except TimeoutError:
            raise _wrong(self._source, f"the server did not answer within {_SECONDS:g} s") from None
        except ToolError as error:
            raise _wrong(self._source, str(error)) from None

    def operations(self) -> Iterator[_Operation]:
        for path, item in _object(self._data.get("paths")).items():
            found = _object(self._resolved(item))
            for method, definition in found.items():
                if method in _METHODS and isinstance(definition, dict):
                    yield _Operation(self._source.name, method, path, found, definition)

    def endpoint(self, operation: _Operation) -> Endpoint:
        """Return the endpoint of an operation; raises _Unfit, and ToolSetupError if nobody says where the server is."""
        source, method = self._source, operation.method
        if not NAME.match(operation.name):
            raise _Unfit("that cannot be a tool's name, which has at most 64 letters, digits and _")
        properties, required, query, path = self._parameters(operation)
        headers = dict(source.headers)
        if kind := self._add_body(operation, properties, required):
            headers = {"Content-Type": kind, **headers}
        own = {"type": "object", "properties": properties, "required": required}
        arguments = self._with_definitions(own)
        if flaw := flaw_of(arguments):
            raise _Unfit(flaw)
        usual: Effect = "read" if method in _READS else "write"
        said = operation.definition.get("summary") or operation.definition.get("description")
        try:
            endpoint = Endpoint.model_validate(
                {
                    "name": operation.name,
                    "description": one_line(said if isinstance(said, str) else operation.call, MAX_MESSAGE_CHARACTERS),
                    "method": method.upper(),
                    "url": self._url(operation, path),
                    "arguments": {**own, "$defs": _chains(arguments.get("$defs", {}))},
                    "query": tuple(query),
                    "body": None if method in _BODILESS else BODY,
                    "headers": headers,
                    "effect": _first_fit(operation, source.effects) or usual,
                    "timeout": f"{source.timeout * 1000:.0f}ms",
                    "max_bytes": source.max_bytes,
                    "idempotency_header": source.idempotency_header if method not in _READS else None,
                    "resource": _first_fit(operation, source.resources),
                }
            )
        except ValidationError as error:
            raise _Unfit(": ".join(filter(None, first_error(error)))) from None
        return endpoint.model_copy(update={"arguments": arguments})  # shared schemas are checked already, once

    def _parameters(self, operation: _Operation) -> tuple[dict[str, Any], list[str], list[str], str]:
        """Return the schemas of the arguments, which are required, which are in the query, and the path with them."""
        parameters: dict[tuple[str, str], Any] = {}
        for each in (*_list(operation.item.get("parameters")), *_list(operation.definition.get("parameters"))):
            found = _object(self._resolved(each))
            parameters[str(found.get("in")), str(found.get("name"))] = found
        properties: dict[str, Any] = {}
        required: list[str] = []
        query: list[str] = []
        path = operation.path
        for (location, name), each in parameters.items():
            argument = name
            if location == "path":
                argument = _ODD.sub("_", name)
            why = self._unsendable(location, name, each)
            if why or argument in properties:
                if each.get("required") and not self._is_sent_anyway(location, name):
                    raise _Unfit(why or f"two of its parameters are called {argument!r}")
                continue
            schema = self._schema(each.get("schema", {}))
            properties[argument] = {**({"description": each["description"]} if "description" in each else {}), **schema}
            if each.get("required") or location == "path":
                required.append(argument)
            if location == "query":
                query.append(argument)
            else:
                path = path.replace(f"{{{name}}}", f"{{{argument}}}")
        missing = [name for name in _SLOT.findall(path) if name not in properties or name in query]
        if missing:
            raise _Unfit(f"its path has {{{missing[0]}}}, and no parameter says what that is")
        return properties, required, query, path

    def _unsendable(self, location: str, name: str, parameter: Mapping[str, Any]) -> str:
        """Return why a call cannot send a parameter, nothing if it can."""
        if location not in ("path", "query"):
            return f"it needs the {location} {name!r}; give that under `headers`"
        usual = {"path": "simple", "query": "form"}[location]
        schema = _object(self._resolved(parameter.get("schema", {})))
        is_list = schema.get("type") in ("array", "object")
        spread = parameter.get("explode", location == "query") is True and schema.get("type") == "array"
        if "content" in parameter or parameter.get("style", usual) != usual or (is_list and not spread):
            return f"it needs the parameter {name!r} in a form that is not supported"
        return ""

    def _is_sent_anyway(self, location: str, name: str) -> bool:
        """Whether a header is sent with every call, or is not meant as a parameter."""
        known = (*_IGNORED_HEADERS, *(each.lower() for each in self._source.headers))
        return location == "header" and name.lower() in known

    def _add_body(self, operation: _Operation, properties: dict[str, Any], required: list[str]) -> str:
        """Add the argument for the body, if there is one; return its type if that is JSON under another name."""
        body = _object(self._resolved(operation.definition.get("requestBody", {})))
        content = _object(body.get("content"))
        kinds = {kind.partition(";")[0].strip().lower(): kind for kind in content}
        kind = next((each for each in kinds if each == "application/json" or each.endswith("+json")), "")
        if not kind or operation.method in _BODILESS:
            if body.get("required"):
                raise _Unfit(f"it needs a body of the type {', '.join(kinds) or 'unknown'}; only JSON can be sent")
            return ""
        if BODY in properties:
            raise _Unfit("one of its parameters is called `body`, as its body is")
        properties[BODY] = self._schema(_object(content[kinds[kind]]).get("schema", {}))
        if body.get("required"):
            required.append(BODY)
        return kind if kind != "application/json" else ""

    def _schema(self, schema: Any) -> Any:
        """Return a schema of the document as plans have them, without what is only in answers. The keywords that no
        check knows are left to the server.
        """
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}
        if isinstance(reference := schema.get("$ref"), str):
            if not reference.startswith(_SCHEMAS):
                raise _Unfit(f"it refers to {reference!r}, which is not among the document's own schemas")
            return {"$ref": "#/$defs/" + reference.removeprefix(_SCHEMAS)}
        kept: dict[str, Any] = {}
        for name, value in schema.items():
            if name == "properties" and isinstance(value, dict):
                kept[name] = {key: self._schema(each) for key, each in value.items() if not _is_answer(each)}
            elif name in ("anyOf", "oneOf", "allOf") and isinstance(value, list) and value:
                kept[name] = [self._schema(each) for each in value]
            elif name in ("items", "additionalProperties"):
                kept[name] = self._schema(value)
            elif name not in ("$defs", "properties") and not any(unknown_keywords({name: value})):
                kept[name] = value
        hidden = [key for key, each in _object(schema.get("properties")).items() if _is_answer(each)]
        if isinstance(kept.get("required"), list):
            kept["required"] = [name for name in kept["required"] if name not in hidden]
        if schema.get("nullable") is True and isinstance(kept.get("type"), str):
            kept["type"] = [kept["type"], "null"]
        if "example" in schema and "examples" not in kept:
            kept["examples"] = [schema["example"]]
        return kept

    def _with_definitions(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of arguments with every definition that it refers to."""
        known = _object(_object(self._data.get("components")).get("schemas"))
        found: dict[str, Any] = {}
        waiting = list(_references(arguments))
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            if name not in known:
                raise _Unfit(f"it refers to the schema {name!r}, which the document does not have")
            definition = self._definition(name, known[name])
            if definition.problem:
                raise _Unfit(definition.problem)
            found[name] = definition.schema
            waiting += definition.references
        if not found:
            return arguments
        return {**arguments, "$defs": dict(sorted(found.items()))}

    def _definition(self, name: str, schema: Any) -> _Definition:
        """Return a shared schema, which is converted and checked once, however many operations refer to it."""
        if name not in self._definitions:
            converted = self._schema(schema)
            references = tuple(dict.fromkeys(_references(converted)))
            alone = converted
            if isinstance(converted, dict):  # each of those that it refers to is checked alone
                alone = {**converted, "$defs": {reference: {} for reference in references}}
            problem = ""
            for where, why in unknown_keywords(alone, ("$defs", name)):
                problem = f"{place_of(where)}: {why}"
                break
            self._definitions[name] = _Definition(converted, references, problem)
        return self._definitions[name]

    def _resolved(self, value: Any) -> Any:
        """Return a part of the document, or what it refers to. Raises _Unfit."""
        for _ in range(10):
            reference = None
            if isinstance(value, dict):
                reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self._data
            for part in reference.removeprefix("#/").split("/"):
                value = _object(value).get(part.replace("~1", "/").replace("~0", "~"))
            if value is None:
                raise _Unfit(f"it refers to {reference!r}, which the document does not have")
        raise _Unfit("its references form a circle")

    def _url(self, operation: _Operation, path: str) -> str:
        """Return where an operation is: at its server, whatever its path says, as calls may carry secrets. Raises
        _Unfit and ToolSetupError.
        """
        server = self._server(operation)
        url = server + path
        if not path.startswith("/") or urlsplit(url)[:2] != urlsplit(server)[:2]:
            raise _Unfit(f"its path {operation.path!r} does not begin with /, or leads to another host")
        if any(unquote(part) in (".", "..") for part in re.split(r"[/\\]", urlsplit(url).path)):
            raise _Unfit(f"its path {operation.path!r} has . or .. in it, and would leave its place")
        return url

    def _server(self, operation: _Operation) -> str:
        """Return where the server of an operation is, without a slash at the end. A document that came over the network
        names no other host than its own: calls may carry secrets. Raises ToolSetupError.
        """
        source = self._source
        if source.url is not None:
            return source.url.rstrip("/")
        places = (operation.definition.get("servers"), operation.item.get("servers"), self._data.get("servers"))
        server = _object(next((each[0] for each in places if isinstance(each, list) and each), {"url": "/"}))
        variables = _object(server.get("variables"))
        url = _SLOT.sub(
            lambda slot: str(_object(variables.get(slot[1])).get("default", "")), str(server.get("url", "/"))
        )
        if self._is_remote:
            url = urljoin(source.document, url)
        if not url.startswith(("http://", "https://")):
            raise _wrong(source, "it does not say where its server is; give that under `url`")
        if self._is_remote and urlsplit(url)[:2] != urlsplit(source.document)[:2]:
            raise _wrong(source, f"its server is {url!r}, on another host; if you trust that, give it under `url`")
        return url.rstrip("/")


def _chains(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return of shared schemas only which of them is another one: what is to be checked of all of them together."""
    chains: dict[str, Any] = {}
    for name, schema in definitions.items():
        parts = schema if isinstance(schema, dict) else {}
        chains[name] = {key: parts[key] for key in ("$ref", "anyOf", "oneOf", "allOf") if key in parts}
    return chains


def _wrong(source: Source, problem: str) -> ToolSetupError:
    return ToolSetupError(f"openapi.{source.name}: {source.document}: {one_line(problem, MAX_MESSAGE_CHARACTERS)}")


def _read(source: Source, folder: Path) -> bytes:
    try:
        with (folder / Path(source.document).expanduser()).open("rb") as file:
            return file.read(MAX_OPENAPI_BYTES + 1)[:MAX_OPENAPI_BYTES]
    except OSError as error:
        raise _wrong(source, f"cannot be read: {error.strerror}") from None


def _parsed(source: Source, body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise _wrong(source, f"is no JSON of at most {MAX_OPENAPI_BYTES // 1_000_000} MB; convert YAML first") from None
    if not isinstance(data, dict) or not str(data.get("openapi", "")).startswith("3."):
        raise _wrong(source, "is no document of OpenAPI 3")
    if is_deep(data):
        raise _wrong(source, "is nested more than 50 deep")
    return data


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name == "$ref" and isinstance(each, str):
                yield each.removeprefix("#/$defs/")
            else:
                yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _first_fit(operation: _Operation, table: Mapping[str, Any]) -> Any:
    return next((value for pattern, value in table.items() if operation.fits(pattern)), None)


def _is_answer(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return []
    return value
