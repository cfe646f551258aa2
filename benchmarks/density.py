"""`make density`: how much a reader of the source must hold at once, by package,
and its densest files.

A statement is measured by the nodes of its syntax tree, without those of the statements inside it
and without docstrings. So the figures do not depend on where lines are broken.
`tests/test_architecture.py` holds them.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sizes import ROOT, python_files

PACKAGES = ("workflows", "activities", "workers", "starter", "sennit/testing")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SHOWN = 10
FEWEST_STATEMENTS = 20
"""A file with fewer statements is not listed among the densest: one long constant would decide."""


@dataclass
class Density:
    """The figures of some files."""

    statements: list[int] = field(default_factory=list)
    """The syntax nodes of each statement."""
    conditionals: int = 0
    comprehensions: int = 0

    def add(self, tree: ast.Module) -> None:
        """Count the statements of one file."""
        for statement in ast.walk(tree):
            if not isinstance(statement, ast.stmt) or is_docstring(statement):
                continue
            nodes = list(own_nodes(statement))
            self.statements.append(len(nodes))
            for node in nodes:
                if isinstance(node, ast.IfExp):
                    self.conditionals += 1
                elif isinstance(node, COMPREHENSIONS):
                    self.comprehensions += 1

    @property
    def mean(self) -> float:
        """The syntax nodes of a statement, on average."""
        return sum(self.statements) / len(self.statements)

    @property
    def p90(self) -> int:
        """The syntax nodes that nine of ten statements stay below."""
        return sorted(self.statements)[len(self.statements) * 9 // 10]

    @property
    def conditional_rate(self) -> float:
        """Conditional expressions per thousand statements."""
        return self.conditionals * 1000 / len(self.statements)

    @property
    def comprehension_rate(self) -> float:
        """Comprehensions per thousand statements."""
        return self.comprehensions * 1000 / len(self.statements)


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a text that stands alone."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the syntax nodes of one statement, without those of the statements inside it."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        children = ast.iter_child_nodes(node)
        pending += [child for child in children if not isinstance(child, ast.stmt)]


def density_of(paths: list[Path]) -> Density:
    """Return the figures of some files together."""
    density = Density()
    for path in paths:
        density.add(ast.parse(path.read_text()))
    return density


def row(name: str, density: Density) -> str:
    """Return one line of the table."""
    rates = f"{density.conditional_rate:12.1f} {density.comprehension_rate:14.1f}"
    return f"{name:50} {density.mean:6.2f} {density.p90:4} {rates}"


def main() -> None:
    """Print the figures of each package, then those of the densest files."""
    print(f"{'':50} {'nodes':>6} {'':4} {'conditionals':>12} {'comprehensions':>14}")
    print(f"{'':50} {'mean':>6} {'p90':>4} {'per 1,000':>12} {'per 1,000':>14}")
    for package in PACKAGES:
        print(row(package, density_of(python_files(package))))

    files = []
    for path in python_files(*PACKAGES):
        density = density_of([path])
        if len(density.statements) >= FEWEST_STATEMENTS:
            files.append((density.mean, path, density))
    files.sort(reverse=True, key=lambda entry: entry[0])
    print("\nfiles: the densest:")
    for _, path, density in files[:SHOWN]:
        print(row(path.relative_to(ROOT).as_posix(), density))


if __name__ == "__main__":
    main()
