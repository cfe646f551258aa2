"""YAML as plain JSON data. The composed nodes stay, so that a problem can name the line
of the part it is about.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor

from sennit.starter.limits import MAX_YAML_LEVELS
from sennit.workflows.plan.language.problems import Where

_TAG = "tag:yaml.org,2002:"
_SCHEMAS = {"schema", "output_schema"}
_BOOLEAN_WORDS = {"yes", "no", "on", "off"}
_CONSTRUCTOR: Any = SafeConstructor()


class BadSyntax(Exception):
    """Text that cannot be read as JSON data. `line` counts from 1; 0 if it is not known."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def line_of(node: Any) -> int:
    """Return the line on which a node or an event of the YAML parser starts."""
    if not node.start_mark:
        return 1
    return int(node.start_mark.line) + 1


class _Loader(Composer, yaml.CSafeLoader):
    """Composes nodes in Python from the events of libyaml, so that it can refuse deep
    nesting before it recurses.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth > MAX_YAML_LEVELS:
            raise BadSyntax(
                line_of(self.peek_event()), f"nested more than {MAX_YAML_LEVELS} levels deep"
            )
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class YamlText:
    """One YAML document. `data` is its value as JSON data, in which the aliases of one
    anchor share one object.

    Raises BadSyntax for what is not YAML, and for what JSON cannot hold: tags, merge keys,
    keys that are no text.
    """

    def __init__(self, text: str) -> None:
        try:
            node = _Loader(text).get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line if mark else 0
            lines = text.splitlines()
            raise BadSyntax(line + 1, _sentence(error, lines[line : line + 1])) from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise BadSyntax(line, f"YAML allows no such character: {error.reason}") from None
        if node is None:
            raise BadSyntax(1, "the file is empty")
        self._made: dict[yaml.Node, Any] = {}
        self._root = node
        self.data = self._value(node)

    def line(self, where: Where) -> int:
        """Return the line of the deepest part on the path `where`."""
        return line_of(self._find(where))

    def hint(self, where: Where) -> str:
        """Return what YAML made of a word such as `yes` at this place, or nothing."""
        node = self._find(where)
        if not _is_boolean_word(node):
            return ""
        word = node.value
        return (
            f"; YAML reads `{word}` as {str(self._made[node]).lower()}: to mean the word, write "
            f"'{word}'"
        )

    def boolean_choices(self) -> Iterator[tuple[Where, str]]:
        """Yield each list of choices in a schema that has words such as `yes` in it, which YAML
        reads as true or false, with these words.
        """
        waiting: list[tuple[Where, yaml.Node]] = [((), self._root)]
        while waiting:
            where, node = waiting.pop()
            if isinstance(node, yaml.MappingNode):
                for key, item in node.value:
                    waiting.append(((*where, key.value), item))
            elif isinstance(node, yaml.SequenceNode):
                for index, item in enumerate(node.value):
                    waiting.append(((*where, index), item))
                is_choice = where[-1:] == ("enum",) and not _SCHEMAS.isdisjoint(where)
                words = [f"`{item.value}`" for item in node.value if _is_boolean_word(item)]
                if is_choice and words:
                    yield where, " and ".join(words)

    def _find(self, where: Where) -> yaml.Node:
        """Return the node at a place, or the last one on the way to a place that is not there."""
        node = self._root
        for step in where:
            inside = node.value
            if isinstance(node, yaml.MappingNode):
                items = {key.value: item for key, item in inside}
                node = items.get(step, node)
            elif (
                isinstance(node, yaml.SequenceNode)
                and isinstance(step, int)
                and 0 <= step < len(inside)
            ):
                node = inside[step]
        return node

    def _value(self, node: yaml.Node) -> Any:
        if node in self._made:
            if self._made[node] is ...:
                raise BadSyntax(
                    line_of(node), "an alias inside its own anchor: a plan cannot contain itself"
                )
            return self._made[node]
        self._made[node] = ...  # still being read
        value: Any
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node)
        elif isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            value = [self._value(item) for item in node.value]
        elif isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            value = self._mapping(node)
        else:
            raise _bad_tag(node)
        self._made[node] = value
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        made: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, item in node.value:
            key = self._key(key_node)
            line = line_of(key_node)
            if key in made:
                raise BadSyntax(
                    line, f"the key `{key}` is already on line {lines[key]}; a key may stand once"
                )
            lines[key] = line
            made[key] = self._value(item)
        return made

    def _key(self, node: yaml.Node) -> str:
        """Return a key's text; other keys are refused, with the reason if YAML read a
        word as true or false.
        """
        key = self._value(node)
        line = line_of(node)
        if isinstance(key, str):
            return key
        if _is_boolean_word(node):
            word = node.value
            raise BadSyntax(
                line, f"YAML reads the key `{word}` as {str(key).lower()}; write it as '{word}'"
            )
        if isinstance(key, dict | list):
            raise BadSyntax(line, "a key is text, not a list or an object")
        raise BadSyntax(line, f"the key `{key}` is read as a value, not as text; put it in quotes")

    @staticmethod
    def _scalar(node: yaml.ScalarNode) -> Any:
        tag, text = node.tag.removeprefix(_TAG), node.value
        if tag == "merge":
            raise BadSyntax(
                line_of(node),
                "merge keys (`<<`) are not part of the plan language; write the fields out",
            )
        if tag in ("str", "timestamp", "value") or not text.isprintable():
            return text
        if tag not in ("null", "bool", "int", "float"):
            raise _bad_tag(node)
        try:
            value = getattr(_CONSTRUCTOR, f"construct_yaml_{tag}")(node)
        except (ValueError, KeyError, IndexError):
            raise BadSyntax(
                line_of(node), f"`{text[:40]}` is no {tag}; quote it if it is text"
            ) from None
        if isinstance(value, float) and not isfinite(value):
            raise BadSyntax(line_of(node), f"`{text}` is not a number a plan can hold")
        return value


def _is_boolean_word(node: yaml.Node) -> bool:
    return node.tag == f"{_TAG}bool" and node.value.lower() in _BOOLEAN_WORDS


def _bad_tag(node: yaml.Node) -> BadSyntax:
    return BadSyntax(
        line_of(node), f"the tag `{node.tag.removeprefix(_TAG)}` has no meaning in a plan"
    )


def _sentence(error: yaml.MarkedYAMLError, lines: list[str]) -> str:
    problem = error.problem or "not YAML"
    if problem == "but found another document":
        return "a second document begins here; a file holds one plan"
    if lines:
        line = lines[0]
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent:
            problem += " (a tab: indent with spaces)"
    if not error.context:
        return problem
    return f"{error.context}: {problem}"
