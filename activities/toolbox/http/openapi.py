"""Endpoints from a document of OpenAPI 3, in JSON: an operation is a tool
called `name_operation`.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from pydantic import AfterValidator, Field, ValidationError

from sennit.activities.http.client import Request
from sennit.activities.http.download import exchange
from sennit.activities.limits import (
    MAX_MESSAGE_CHARACTERS,
    MAX_OPENAPI_BYTES,
    MAX_OPENAPI_OPERATIONS,
)
from sennit.activities.toolbox.configuration import (
    Resource,
    Strict,
    flaw_of,
    is_deep,
    without_credentials,
)
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
    """A document, by URL or by its path beside the file that declares it, and which of
    its operations are tools.

    `operations` are patterns of an operation's id, or of its method and path such as `GET
    /tickets/*`. GET and HEAD read, anything else writes, unless `effects` says otherwise.
    `url` is where the server is, if the document is not to say it. The other fields are
    those of every endpoint.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]
    document: Annotated[str, Field(min_length=1), AfterValidator(without_credentials)]
    operations: tuple[str, ...] = ("*",)
    effects: dict[str, Effect] = Field(default_factory=dict)
    url: (
        Annotated[
            str,
            Field(pattern=r"^https?://[^/?#{}]+(/[^?#{}]*)?$"),
            AfterValidator(without_credentials),
        ]
        | None
    ) = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: Duration = 30.0
    max_bytes: Annotated[int, Field(ge=1, le=8_000_000)] = 1_000_000
    idempotency_header: str | None = None
    resources: dict[str, Resource] = Field(default_factory=dict)


class _Unfit(Exception):
    """Why an operation cannot be a tool."""


def read_source(source: Source, folder: Path) -> tuple[list[Endpoint], dict[str, str]]:
    """Return an endpoint for each chosen operation, and by the tool's name
    why others cannot be one.

    Raises ToolSetupError naming the document, or the pattern that fits no operation.
    """
    document = _Document(source, folder)
    operations = list(document.operations())
    chosen = [operation for operation in operations if any(map(operation.fits, source.operations))]

    # A pattern that fits nothing is a mistake; those of effects and resources are about
    # the chosen operations.
    _check_patterns(source, "operations", source.operations, operations)
    _check_patterns(source, "effects", source.effects, chosen)
    _check_patterns(source, "resources", source.resources, chosen)
    if len(chosen) > MAX_OPENAPI_OPERATIONS:
        raise ToolSetupError(
            f"openapi.{source.name}: {len(chosen)} operations are too many tools; choose some "
            "under `operations`"
        )

    names = Counter(operation.name for operation in chosen)
    endpoints: list[Endpoint] = []
    left_out: dict[str, str] = {}
    for operation in chosen:
        try:
            if names[operation.name] > 1:
                raise _Unfit(f"{names[operation.name]} operations would be called that")
            endpoints.append(document.endpoint(operation))
        except _Unfit as reason:
            left_out[printable(operation.name, 80)] = one_line(str(reason), MAX_MESSAGE_CHARACTERS)
    return endpoints, left_out


def _check_patterns(
    source: Source, where: str, patterns: Iterable[str], known: "Sequence[_Operation]"
) -> None:
    """Raise ToolSetupError for a pattern that fits none of the known operations."""
    for pattern in patterns:
        if not any(operation.fits(pattern) for operation in known):
            keys = [operation.key for operation in known]
            near = nearest_or_known(pattern, keys)
            raise ToolSetupError(
                f"openapi.{source.name}.{where}: no operation fits {pattern!r}{near}"
            )


class _Operation:
    """An operation as the document has it: `key` is its id, or its method and path."""

    def __init__(
        self,
        source: str,
        method: str,
        path: str,
        item: Mapping[str, Any],
        definition: Mapping[str, Any],
    ) -> None:
        self.method = method
        self.path = path
        self.item = item
        self.definition = definition
        self.call = f"{method.upper()} {path}"
        identifier = definition.get("operationId")
        if isinstance(identifier, str):
            self.key = identifier
            words = _ODD.sub("_", identifier)
        else:
            self.key = self.call
            words = "_".join((method, *re.findall(r"\w+", path)))
        self.name = f"{source}_{words}"

    @property
    def summary(self) -> str:
        """What the document says of it, else its method and path."""
        said = self.definition.get("summary") or self.definition.get("description")
        if isinstance(said, str):
            return said
        return self.call

    def fits(self, pattern: str) -> bool:
        return fnmatchcase(self.key, pattern) or fnmatchcase(self.call, pattern)


@dataclass(frozen=True, slots=True)
class _Definition:
    """A schema that operations share, as plans have it; the names of those that it refers to; and
    why no tool can have it, if that is so.
    """

    schema: Any
    references: tuple[str, ...]
    problem: str


class _Document:
    """A document that has been read, and what it is a source of."""

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._is_remote = source.document.startswith(("http://", "https://"))
        if self._is_remote:
            body = self._fetch()
        else:
            body = _read(source, folder)
        self._data = _parsed(source, body)
        self._definitions: dict[str, _Definition] = {}

    def _fetch(self) -> bytes:
        async def fetch() -> bytes:
            async with asyncio.timeout(_SECONDS):
                answer = await exchange(Request("GET", self._source.document), MAX_OPENAPI_BYTES)
            if answer.status != 200:
                raise _wrong(
                    self._source,
                    f"the server answers {answer.status}, {answer.location or 'without it'}",
                )
            if answer.truncated:
                return b""
            return answer.body

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
        """Return the endpoint of an operation; raises _Unfit, and ToolSetupError if nobody
        says where the server is.
        """
        source, method = self._source, operation.method
        if not NAME.match(operation.name):
            raise _Unfit("that cannot be a tool's name, which has at most 64 letters, digits and _")
        properties, required, query, path = self._parameters(operation)
        headers = dict(source.headers)
        kind = self._add_body(operation, properties, required)
        if kind:
            headers = {"Content-Type": kind, **headers}
        own = {"type": "object", "properties": properties, "required": required}
        arguments = self._with_definitions(own)
        flaw = flaw_of(arguments)
        if flaw:
            raise _Unfit(flaw)

        fields: dict[str, Any] = {
            "name": operation.name,
            "description": one_line(operation.summary, MAX_MESSAGE_CHARACTERS),
            "method": method.upper(),
            "url": self._url(operation, path),
            "arguments": {**own, "$defs": _chains(arguments.get("$defs", {}))},
            "query": tuple(query),
            "headers": headers,
            "effect": _first_fit(operation, source.effects),
            "timeout": f"{source.timeout * 1000:.0f}ms",
            "max_bytes": source.max_bytes,
            "resource": _first_fit(operation, source.resources),
        }
        if method not in _BODILESS:
            fields["body"] = BODY
        if method not in _READS:
            fields["idempotency_header"] = source.idempotency_header
        if not fields["effect"]:
            fields["effect"] = "read" if method in _READS else "write"
        try:
            endpoint = Endpoint.model_validate(fields)
        except ValidationError as error:
            raise _Unfit(": ".join(filter(None, first_error(error)))) from None
        # Shared schemas are checked already, once.
        return endpoint.model_copy(update={"arguments": arguments})

    def _parameters(
        self, operation: _Operation
    ) -> tuple[dict[str, Any], list[str], list[str], str]:
        """Return the schemas of the arguments, which are required, which are in the query,
        and the path with them.
        """
        # A parameter of the operation takes the place of one that all operations of this path have.
        parameters: dict[tuple[str, str], Any] = {}
        of_path = _list(operation.item.get("parameters"))
        of_operation = _list(operation.definition.get("parameters"))
        for written in (*of_path, *of_operation):
            parameter = _object(self._resolved(written))
            place = (str(parameter.get("in")), str(parameter.get("name")))
            parameters[place] = parameter

        properties: dict[str, Any] = {}
        required: list[str] = []
        query: list[str] = []
        path = operation.path
        for (location, name), parameter in parameters.items():
            argument = name
            if location == "path":
                argument = _ODD.sub("_", name)
            why = self._unsendable(location, name, parameter)
            if why or argument in properties:
                if parameter.get("required") and not self._is_sent_anyway(location, name):
                    raise _Unfit(why or f"two of its parameters are called {argument!r}")
                continue
            schema = dict(_object(self._schema(parameter.get("schema", {}))))
            if "description" in parameter:
                schema = {"description": parameter["description"], **schema}
            properties[argument] = schema
            if parameter.get("required") or location == "path":
                required.append(argument)
            if location == "query":
                query.append(argument)
            else:
                path = path.replace(f"{{{name}}}", f"{{{argument}}}")
        for slot in _SLOT.findall(path):
            if slot not in properties or slot in query:
                raise _Unfit(f"its path has {{{slot}}}, and no parameter says what that is")
        return properties, required, query, path

    def _unsendable(self, location: str, name: str, parameter: Mapping[str, Any]) -> str:
        """Return why a call cannot send a parameter, nothing if it can."""
        if location not in ("path", "query"):
            return f"it needs the {location} {name!r}; give that under `headers`"
        usual_style = "simple" if location == "path" else "form"
        is_usual = "content" not in parameter and parameter.get("style", usual_style) == usual_style
        declared = self._resolved(parameter.get("schema", {}))
        if declared is False:
            return f"it needs the parameter {name!r}, of which no value is valid"
        schema = _object(declared)
        kind = schema.get("type")
        # The values of a list stand one by one, as they do in a query unless it says otherwise.
        if kind == "array":
            is_usual = is_usual and parameter.get("explode", location == "query") is True
        if not is_usual or kind == "object":
            return f"it needs the parameter {name!r} in a form that is not supported"
        return ""

    def _is_sent_anyway(self, location: str, name: str) -> bool:
        """Whether a header is sent with every call, or is not meant as a parameter."""
        if location != "header":
            return False
        sent = [header.lower() for header in self._source.headers]
        return name.lower() in (*_IGNORED_HEADERS, *sent)

    def _add_body(
        self, operation: _Operation, properties: dict[str, Any], required: list[str]
    ) -> str:
        """Add the argument for the body, if there is one; return its type if that is
        JSON under another name.
        """
        body = _object(self._resolved(operation.definition.get("requestBody", {})))
        content = _object(body.get("content"))
        kinds = {written.partition(";")[0].strip().lower(): written for written in content}
        json_kinds = [
            kind for kind in kinds if kind == "application/json" or kind.endswith("+json")
        ]
        if not json_kinds or operation.method in _BODILESS:
            if body.get("required"):
                raise _Unfit(
                    f"it needs a body of the type {', '.join(kinds) or 'unknown'}; only JSON can "
                    "be sent"
                )
            return ""
        if BODY in properties:
            raise _Unfit("one of its parameters is called `body`, as its body is")
        kind = json_kinds[0]
        media = _object(content[kinds[kind]])
        properties[BODY] = self._schema(media.get("schema", {}))
        if body.get("required"):
            required.append(BODY)
        if kind == "application/json":
            return ""
        return kind

    def _schema(self, schema: Any) -> Any:
        """Return a schema of the document as plans have them, without what is only in answers. The
        keywords that no check knows are left to the server.
        """
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if not reference.startswith(_SCHEMAS):
                raise _Unfit(
                    f"it refers to {reference!r}, which is not among the document's own schemas"
                )
            return {"$ref": "#/$defs/" + reference.removeprefix(_SCHEMAS)}

        kept: dict[str, Any] = {}
        for name, value in schema.items():
            if name == "properties" and isinstance(value, dict):
                kept[name] = self._properties(value)
            elif name in ("anyOf", "oneOf", "allOf") and isinstance(value, list) and value:
                kept[name] = [self._schema(part) for part in value]
            elif name in ("items", "additionalProperties"):
                kept[name] = self._schema(value)
            elif name not in ("$defs", "properties") and not any(unknown_keywords({name: value})):
                kept[name] = value

        # What is only in answers is not required of a call.
        properties = _object(schema.get("properties"))
        hidden = [key for key, part in properties.items() if _is_answer(part)]
        if isinstance(kept.get("required"), list):
            kept["required"] = [name for name in kept["required"] if name not in hidden]
        if schema.get("nullable") is True and isinstance(kept.get("type"), str):
            kept["type"] = [kept["type"], "null"]
        if "example" in schema and "examples" not in kept:
            kept["examples"] = [schema["example"]]
        return kept

    def _properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schemas of properties, without those that are only in answers."""
        kept: dict[str, Any] = {}
        for name, schema in properties.items():
            if not _is_answer(schema):
                kept[name] = self._schema(schema)
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
        """Return a shared schema, which is converted and checked once, however many
        operations refer to it.
        """
        if name not in self._definitions:
            converted = self._schema(schema)
            references = tuple(dict.fromkeys(_references(converted)))
            alone = converted
            if isinstance(converted, dict):  # each of those that it refers to is checked alone
                definitions: dict[str, Any] = {reference: {} for reference in references}
                alone = {**converted, "$defs": definitions}
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
        """Return where an operation is: at its server, whatever its path says, as calls may carry
        secrets. Raises _Unfit and ToolSetupError.
        """
        server = self._server(operation)
        url = server + path
        if not path.startswith("/") or urlsplit(url)[:2] != urlsplit(server)[:2]:
            raise _Unfit(
                f"its path {operation.path!r} does not begin with /, or leads to another host"
            )
        parts = [unquote(part) for part in re.split(r"[/\\]", urlsplit(url).path)]
        if "." in parts or ".." in parts:
            raise _Unfit(
                f"its path {operation.path!r} has . or .. in it, and would leave its place"
            )
        return url

    def _server(self, operation: _Operation) -> str:
        """Return where the server of an operation is, without a slash at the end. A document
        that came over the network names no other host than its own: calls may carry secrets.
        Raises ToolSetupError.
        """
        source = self._source
        if source.url is not None:
            return source.url.rstrip("/")
        # The operation's own servers come before those of its path, and those
        # before the document's.
        server: dict[str, Any] = {"url": "/"}
        for level in (operation.definition, operation.item, self._data):
            servers = level.get("servers")
            if isinstance(servers, list) and servers:
                server = _object(servers[0])
                break
        variables = _object(server.get("variables"))

        def default_of(slot: re.Match[str]) -> str:
            variable = _object(variables.get(slot[1]))
            return str(variable.get("default", ""))

        url = _SLOT.sub(default_of, str(server.get("url", "/")))
        if self._is_remote:
            url = urljoin(source.document, url)
        if not url.startswith(("http://", "https://")):
            raise _wrong(source, "it does not say where its server is; give that under `url`")
        if self._is_remote and urlsplit(url)[:2] != urlsplit(source.document)[:2]:
            raise _wrong(
                source,
                f"its server is {url!r}, on another host; if you trust that, give it under `url`",
            )
        return url.rstrip("/")


def _chains(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return of shared schemas only which of them is another one: what is to be checked
    of all of them together.
    """
    chains: dict[str, Any] = {}
    for name, schema in definitions.items():
        parts = _object(schema)
        chain: dict[str, Any] = {}
        for keyword in ("$ref", "anyOf", "oneOf", "allOf"):
            if keyword in parts:
                chain[keyword] = parts[keyword]
        chains[name] = chain
    return chains


def _wrong(source: Source, problem: str) -> ToolSetupError:
    return ToolSetupError(
        f"openapi.{source.name}: {source.document}: {one_line(problem, MAX_MESSAGE_CHARACTERS)}"
    )


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
        raise _wrong(
            source, f"is no JSON of at most {MAX_OPENAPI_BYTES // 1_000_000} MB; convert YAML first"
        ) from None
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
    for pattern, value in table.items():
        if operation.fits(pattern):
            return value
    return None


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
