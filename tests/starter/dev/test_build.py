import pytest

from starter.dev.binary import MODULES
from starter.dev.build import GoVersion, go_problem, needed_go, parse_go_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8", (1, 26, 8)),
        ("go1.27rc1", (1, 27, 0)),
        ("devel go1.28-af3d", (1, 28, 0)),
        ("", None),
    ],
)
def test_go_versions_are_read_as_go_writes_them(text: str, version: GoVersion | None) -> None:
    assert parse_go_version(text) == version


@pytest.mark.parametrize(
    ("found", "toolchain", "problem"),
    [
        ((1, 26, 4), "local", None),
        ((1, 27, 0), "local", None),
        ((1, 26, 3), "auto", None),
        ((1, 21, 0), "go1.22.0+auto", None),
        ((1, 26, 3), "local", "Go 1.26.3 is too old and GOTOOLCHAIN=local; 1.26.4 or newer is needed"),
        ((1, 20, 14), "", "Go 1.20.14 is too old; 1.26.4 or newer is needed"),
        (None, "", "`go env GOVERSION` is not understood; Go 1.26.4 or newer is needed"),
    ],
)
def test_a_go_that_is_too_old_is_refused_unless_it_may_fetch_the_right_one(
    found: GoVersion | None, toolchain: str, problem: str | None
) -> None:
    assert go_problem(found, toolchain, (1, 26, 4)) == problem


def test_the_pinned_module_names_the_go_it_needs() -> None:
    assert needed_go((MODULES / "go.mod").read_text()) >= (1, 26, 4)
