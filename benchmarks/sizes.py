"""`make sizes`: how large the tree is, by package and folder, and its
longest files and functions.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ("sennit", "workflows", "activities", "workers", "starter")
SHOWN = 5


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below these folders, in order; those behind the links
    of `sennit` count once.
    """
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lines_of(paths: list[Path]) -> int:
    """Return how many lines the files have, blank ones and comments too."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def functions_of(paths: list[Path]) -> Iterator[tuple[int, str]]:
    """Yield the length and the place of every function."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                yield length, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def main() -> None:
    """Print the sizes."""
    source = python_files(*SOURCE)
    print(f"{'folder':36} {'lines':>7} {'files':>6}")
    for name in (*SOURCE, "tests", "benchmarks", "examples"):
        paths = python_files(name)
        print(f"{name:36} {lines_of(paths):7,} {len(paths):6}")
    print(f"{'source':36} {lines_of(source):7,} {len(source):6}\n")
    for folder in sorted({path.parent for path in source}):
        paths = sorted(folder.glob("*.py"))
        print(f"{folder.relative_to(ROOT).as_posix():36} {lines_of(paths):7,} {len(paths):6}")
    lengths = sorted(length for length, _ in functions_of(source))
    print(
        f"\nfunctions: median {lengths[len(lengths) // 2]}, p90 {lengths[len(lengths) * 9 // 10]} "
        "lines; the longest:"
    )
    for length, place in sorted(functions_of(source), reverse=True)[:SHOWN]:
        print(f"{length:5}  {place}")
    print("files: the longest:")
    for path in sorted(source, key=lambda path: -lines_of([path]))[:SHOWN]:
        print(f"{lines_of([path]):5}  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
