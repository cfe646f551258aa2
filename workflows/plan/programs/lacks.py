"""What Monty lacks of Python: a script that uses it is refused before it calls anything."""

import ast
from collections.abc import Collection, Iterator

from sennit.workflows.plan.language.text import format_name
from sennit.workflows.plan.programs.source import Source
from sennit.workflows.plan.programs.vocabulary import MODULES

Found = Iterator[tuple[str, ast.AST, str]]

_MODULES = {
    "base64": "a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode "
    "b64encode b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode urlsafe_b64decode "
    "urlsafe_b64encode",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "collections": "Counter defaultdict deque namedtuple",
    "collections.abc": "AsyncIterator Awaitable Callable Collection Coroutine Hashable Iterable Iterator Mapping "
    "MutableMapping MutableSequence Sequence Sized",
    "contextlib": "nullcontext suppress",
    "copy": "copy deepcopy",
    "csv": "DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC reader writer",
    "dataclasses": "FrozenInstanceError MISSING asdict dataclass field is_dataclass replace",
    "datetime": "date datetime time timedelta timezone",
    "enum": "Enum IntEnum StrEnum auto",
    "functools": "cache lru_cache partial reduce wraps",
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "io": "StringIO",
    "itertools": "accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile "
    "filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest",
    "json": "JSONDecodeError dump dumps load loads",
    "operator": "abs add and_ attrgetter concat contains countOf eq floordiv ge getitem gt invert is_ is_not "
    "itemgetter le lshift lt mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor",
    "re": "A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern S compile error escape findall finditer "
    "fullmatch match search split sub",
    "statistics": "fmean geometric_mean mean median median_high median_low mode multimode pstdev pvariance quantiles "
    "stdev variance",
    "string": "ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation "
    "whitespace",
    "textwrap": "dedent fill indent shorten wrap",
    "tomllib": "TOMLDecodeError loads",
    "unicodedata": "category combining is_normalized lookup name normalize unidata_version",
    "urllib": "parse",
    "urllib.parse": "parse_qs parse_qsl quote quote_plus unquote unquote_plus urlencode urljoin urlparse urlsplit "
    "urlunparse urlunsplit",
    "uuid": "NAMESPACE_DNS NAMESPACE_URL UUID uuid4 uuid5",
}
"""All that these modules have; of the others, Monty has what scripts use."""
_METHODS = {
    "maketrans": "write .replace(...), or a dict and a loop",
    "translate": "write .replace(...), or a dict and a loop",
    "format_map": "write .format(**values), or an f-string",
    "isocalendar": "write .strftime('%V')",
    "fromtimestamp": "give dates as texts, and write datetime.fromisoformat(...)",
    "utcnow": "write datetime.now()",
    "fromordinal": "write date + timedelta(days=...)",
    "fromisocalendar": "write date + timedelta(days=...)",
    "toordinal": "subtract two dates, and read .days",
    "timetuple": "read .year, .month and the like",
    "bit_length": "write len(bin(number)) - 2",
    "difference_update": "write `one -= other`",
    "intersection_update": "write `one &= other`",
    "symmetric_difference_update": "write `one ^= other`",
    "add_note": "write it into the text of the exception",
    "subn": "write re.sub(...), and count with len(re.findall(...))",
    "is_integer": "write number == int(number)",
    "as_integer_ratio": "write Decimal(number).as_integer_ratio()",
    "to_bytes": "write bytes.fromhex(...)",
    "from_bytes": "write int(data.hex(), 16)",
    "bit_count": "write bin(number).count('1')",
    "from_float": "write Decimal(number)",
    "ctime": "write .strftime('%c')",
    "utcfromtimestamp": "give dates as texts, and write datetime.fromisoformat(...)",
    "utctimetuple": "read .year, .month and the like",
    "with_traceback": "leave it out",
}
"""Methods that no value in a script has, with what to write instead."""
_ATTRIBUTES = {
    "lastindex": "ask each .group(number)",
    "lastgroup": "ask each .group(name)",
}
"""Attributes that no value in a script has."""
_OF_JSON_ERRORS = ("msg", "doc", "pos", "lineno", "colno")
_NAMES = {
    "StatisticsError": "catch ValueError, which is what Python's is based on",
    "methodcaller": "write lambda each: each.method()",
    "Template": "write an f-string, or .replace(...)",
    "OrderedDict": "write a dict, which keeps the order of its keys",
    "VERBOSE": "write the pattern without spaces and comments",
    "X": "write the pattern without spaces and comments",
    "contextmanager": "write a class with __enter__ and __exit__, or try with finally",
    "asynccontextmanager": "write try with finally",
    "unique": "leave it out",
    "Flag": "write a set of the members of an Enum",
    "cached_property": "write a method with @cache outside of the class, or a plain method",
    "cast": "write the value alone",
    "overload": "leave it out",
    "NewType": "write the type itself",
    "Annotated": "write the type itself",
    "TypeVar": "write Any, or the type itself",
    "Generic": "leave it out: annotations are not asked",
    "Protocol": "leave it out: annotations are not asked",
}
"""Names of modules that scripts have not, with what to write instead."""
_TYPING = (
    "Annotated AsyncGenerator Concatenate Counter DefaultDict Deque Generic IO LiteralString Match NewType OrderedDict "
    "ParamSpec Pattern Protocol Reversible SupportsFloat Text TypeGuard TypeVar Unpack assert_never cast get_args "
    "get_type_hints overload override reveal_type runtime_checkable"
)
"""What a script has not of `typing`, which else has what is usual."""
_WRAPPING = ("expand_tabs", "replace_whitespace", "drop_whitespace", "fix_sentence_endings", "tabsize")
_OPTIONS = {
    "wrap": _WRAPPING,
    "fill": _WRAPPING,
    "shorten": _WRAPPING,
    "unquote": ("encoding", "errors"),
    "parse_qs": ("strict_parsing", "encoding", "errors", "max_num_fields", "separator"),
    "parse_qsl": ("strict_parsing", "encoding", "errors", "max_num_fields", "separator"),
    "urlencode": ("safe", "encoding", "errors", "quote_via"),
    "fmean": ("weights",),
    "UUID": ("bytes", "bytes_le", "fields", "is_safe"),
    "print": ("file",),
    "field": ("init", "repr", "compare", "hash", "kw_only", "metadata"),
    "dumps": ("default", "cls", "skipkeys", "check_circular"),
    "loads": ("cls", "object_hook", "parse_float", "parse_int", "object_pairs_hook"),
    "dataclass": ("order", "slots", "kw_only", "init", "repr", "unsafe_hash", "weakref_slot", "match_args"),
}
_SPECIAL = {
    "__len__": "write a method, such as size()",
    "__bool__": "write a method, such as is_empty()",
    "__new__": "write a function that makes it",
    "__setattr__": "write a method",
    "__getattribute__": "write a method",
    "__bytes__": "write a method",
    "__ne__": "write `__eq__`, of which `!=` is the opposite",
    "__getattr__": "write a method with the name as its argument",
    "__reversed__": "write a method that returns a list",
    "__format__": "write a method, and call it in the f-string",
} | dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), "sort with key=lambda each: ...")
_IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ior__", "__iand__")


_FORGOTTEN = {
    **{
        module: _MODULES[module]
        for module in ("collections", "dataclasses", "datetime", "enum", "functools", "itertools", "statistics")
    },
    "decimal": "Decimal",
    "typing": "Any Callable Literal NamedTuple Optional TypedDict Union",
}
"""Names that are often used and not imported, by their modules."""


def import_of(name: str) -> str:
    """Return how a script imports what it names, "" for what it does not import."""
    module = next((module for module, names in _FORGOTTEN.items() if name in names.split()), "")
    if module:
        return f": write `from {module} import {name}`"
    return f": write `import {name}`" if name in MODULES else ""


def names_of(module: str) -> list[str]:
    """Return what a module has, as far as it has less than in Python."""
    return _MODULES.get(module, "").split()


def lacking_name(source: Source, node: ast.Attribute, module: str) -> Found:
    """Find a name that a module has not, or a method or field that no value has."""
    yield from _lacking_attribute(source, node)
    if (module in _MODULES and node.attr not in names_of(module)) or (
        module == "typing" and node.attr in _TYPING.split()
    ):
        yield "lacking", node, f"`{module}` has no {format_name(node.attr)} here{_instead(node.attr)}"
    around = source.parents[node]
    is_called = isinstance(around, ast.Call) and around.func is node
    if not module and is_called and node.attr in _METHODS and not _is_defined(source, node.attr):
        yield "lacking", node, f"there is no method {format_name(node.attr)} here{_instead(node.attr)}"


def _lacking_attribute(source: Source, node: ast.Attribute) -> Found:
    """Find a field that a match has not, or an error of JSON."""
    if node.attr in _ATTRIBUTES and not _is_defined(source, node.attr):
        yield "lacking", node, f"there is no {format_name(node.attr)} here: {_ATTRIBUTES[node.attr]}"
    caught = source.meaning(node.value) if isinstance(node.value, ast.Name) else None
    kind = caught.type if isinstance(caught, ast.ExceptHandler) else None
    if kind is not None and ast.unparse(kind).endswith("JSONDecodeError") and node.attr in _OF_JSON_ERRORS:
        text = f"an error of JSON has no `{node.attr}` here: write str({ast.unparse(node.value)}), which says all of it"
        yield "lacking", node, text


def lacking_import(node: ast.ImportFrom) -> Found:
    """Find a name that a module has not."""
    known = names_of(node.module or "")
    for alias in node.names:
        is_lacking = alias.name in _TYPING.split() if node.module == "typing" else known and alias.name not in known
        if is_lacking and alias.name != "*":
            yield "lacking", node, f"`{node.module}` has no {format_name(alias.name)} here{_instead(alias.name)}"


def lacking_option(source: Source, node: ast.Call, called: str, functions: Collection[ast.AST]) -> Found:
    """Find options that functions of modules have not; `called` is the name of the function in its module."""
    yield from _lacking_type(source, node)
    for keyword in node.keywords:
        if keyword.arg in _OPTIONS.get(called, ()):
            instead = "write file.write(...)" if called == "print" else "leave it out"
            yield "lacking", keyword.value, f"`{called}` has no `{keyword.arg}` here: {instead}"
    if called == "sub" and len(node.args) > 1 and (isinstance(node.args[1], ast.Lambda) or node.args[1] in functions):
        yield (
            "lacking",
            node.args[1],
            "`re.sub` takes no function here: go through re.finditer(...), and join the parts",
        )


def _lacking_type(source: Source, node: ast.Call) -> Found:
    """Find a question for a type that is there for annotations alone."""
    asked = node.args[1:] if isinstance(node.func, ast.Name) and node.func.id == "isinstance" else []
    for name in (part for each in asked for part in ast.walk(each) if isinstance(part, ast.Name)):
        around = source.parents.get(meaning) if (meaning := source.meaning(name)) is not None else None
        if isinstance(around, ast.ImportFrom) and around.module == "collections.abc":
            yield "lacking", name, f"`{name.id}` is for annotations here: ask for list, dict and the like"


def lacking_method(node: ast.FunctionDef) -> Found:
    """Find a special method that Monty does not call."""
    instead = _SPECIAL.get(node.name) or ("write `one = one + other`" if node.name in _IN_PLACE else "")
    if instead:
        yield "lacking", node, f"`{node.name}` is not called here: {instead}"


def _instead(name: str) -> str:
    return f": {_METHODS.get(name) or _NAMES.get(name) or 'write it in the script'}"


def _is_defined(source: Source, name: str) -> bool:
    return any(isinstance(scope, ast.ClassDef) and name in names for scope, names in source.bound.items())
