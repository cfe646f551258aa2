import pytest

from sennit.activities.programs.rewriting import for_monty


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        ("KeyError(5)", "KeyError(str(5))"),
        ("KeyError('é', KeyError(\n  x,\n))", "KeyError(str(('é', KeyError(\n  str(x),\n),)))"),
        ("KeyError(*x)", "KeyError(str((*x,)))"),
        *((same, same) for same in ("KeyError()", "KeyError('x')", "KeyError(f'{KeyError(5)}')", "await a(5)", "(")),
        *((same, same) for same in ("KeyError(x for x in y)", "x" + " + x" * 5000 + " + KeyError()")),
    ],
)
def test_exceptions_are_given_texts(written: str, changed: str) -> None:
    assert for_monty(written, ("KeyError",)) == changed
