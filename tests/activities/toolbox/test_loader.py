from pathlib import Path

import pytest

from sennit.activities.toolbox import ToolModuleError, load_tools

BODY = """
from pydantic import BaseModel
from sennit.activities.toolbox import tool

class Arguments(BaseModel):
    text: str

@tool(effect="pure")
def {name}(args: Arguments) -> str:
    "Do something."
    return args.text
"""


def test_a_module_gives_its_submodules_tools_and_those_it_imports_by_name(modules: Path) -> None:
    package = modules / "acme_pack"
    package.mkdir()
    (package / "__init__.py").write_text("from acme_pack import inner\nfrom acme_other import outer\n")
    (package / "inner.py").write_text("from __future__ import annotations\n" + BODY.format(name="inner_tool"))
    (modules / "acme_other.py").write_text(BODY.format(name="outer") + BODY.format(name="unnamed"))
    registry = load_tools(["acme_pack"], [modules])
    assert {"calculate", "inner_tool", "outer"} <= {each.name for each in registry}
    assert "unnamed" not in registry


def test_loading_again_gives_the_same_tools_and_nothing_of_other_modules(modules: Path) -> None:
    (modules / "first_tools.py").write_text(BODY.format(name="first_tool"))
    (modules / "second_tools.py").write_text(BODY.format(name="second_tool"))
    both = load_tools(["first_tools", "second_tools", "first_tools"], [modules])
    assert "first_tool" in both
    assert "second_tool" in both
    alone = load_tools(["second_tools"], [modules])
    assert "first_tool" not in alone
    assert load_tools(["second_tools"], [modules]).catalogue() == alone.catalogue()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "does not import: ModuleNotFound"),
        ("import no_such_thing_here", r"ModuleNotFoundError: No module named 'no_such_thing_here'.*line 1"),
        ("\n\n1 / 0", r"ZeroDivisionError: division by zero \(broken_tools.py, line 3\)"),
        ("def broken(", r"SyntaxError: .*line 1"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "has no tools; mark its functions with @tool"),
        (BODY.format(name="search"), "the name 'search' is taken by sennit.activities.toolbox.search.tool.search"),
        (BODY.replace('"pure"', '"none"').format(name="odd"), "effect 'none' is not one of"),
        (BODY.format(name="twice") * 2, "the name 'twice' is taken by broken_tools.twice"),
    ],
)
def test_a_broken_module_is_named_with_the_reason_in_one_line(modules: Path, source: str | None, reason: str) -> None:
    if source is not None:
        (modules / "broken_tools.py").write_text(source)
    with pytest.raises(ToolModuleError, match=reason) as caught:
        load_tools(["broken_tools"], [modules])
    assert "tool module 'broken_tools'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_broken_module_registered_is_forgotten(modules: Path) -> None:
    (modules / "half_tools.py").write_text(BODY.format(name="half_tool") + "\n1 / 0\n")
    with pytest.raises(ToolModuleError):
        load_tools(["half_tools"], [modules])
    (modules / "half_tools.py").write_text(BODY.format(name="half_tool"))
    assert "half_tool" in load_tools(["half_tools"], [modules])
