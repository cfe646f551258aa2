"""The mutants fit the source as it is; whether the tests catch them is for `make mutants` to say."""

import ast

from mutants.run import ROOT
from mutants.table import MUTANTS


def test_a_mutant_changes_one_line_and_still_parses_and_names_tests_that_exist() -> None:
    for mutant in MUTANTS:
        source = (ROOT / mutant.file).read_text()
        changed = mutant.applied_to(source)
        assert changed != source, mutant.name
        ast.parse(changed)
        for test in mutant.tests:
            path, _, name = test.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).exists(), test


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
