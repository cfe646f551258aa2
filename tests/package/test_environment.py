"""The page on environment variables names each that the source reads, and no other."""

import ast
import re
from collections.abc import Iterator
from typing import get_args

from doubles.distribution import ROOT

from sennit.workers.settings import unread_variables
from sennit.workflows.plan.language.nodes import Role

NAME = re.compile(r"SENNIT_[A-Z_]*[A-Z]_?")
FOLDERS = ("sennit", "workflows", "activities", "workers", "starter")
ROLES = "SENNIT_MODEL_"


def named_in(tree: ast.AST) -> Iterator[str]:
    """Yield what stands alone in a string: that is a variable to be read, and one in a sentence is not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
            yield node.value


def test_the_page_names_each_variable_that_the_source_reads_and_no_other() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    read = {name for file in files for name in named_in(ast.parse(file.read_text()))}
    assert {"SENNIT_LOG", ROLES} <= read
    read = read - {ROLES} | {f"{ROLES}{role.upper()}" for role in get_args(Role)}
    rows = [line for line in (ROOT / "docs" / "environment.md").read_text().splitlines() if line.startswith("| `")]
    written = [name for row in rows for name in re.findall(r"`(SENNIT_[A-Z_]+)`", row.split("|")[1])]
    assert sorted(written) == sorted(read)
    assert unread_variables(dict.fromkeys(written, "1")) == []
