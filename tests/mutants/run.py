"""Checks that the tests catch what they must: `make mutants`, or `make mutants ARGS="name ..."` for some of them.

Each mutant is one wrong line in a copy of the source. The tests that it names are run against the copy and must fail.
A mutant that survives means that a promise has no test; this program then names it and exits with 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PROCESSES = 2
LONGEST = 120
"""Seconds that the tests of one mutant may take; a mutant that makes them hang is caught too."""


def copy_source(folder: Path) -> Path:
    """Return a copy of what the tests need."""
    place = folder / "source"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "pictures")
    shutil.copytree(ROOT, place, symlinks=True, ignore=left_out)  # a mutant is put behind the links of `sennit`
    return place


def run_tests(place: Path, tests: tuple[str, ...], longest: float) -> bool:
    """Run tests in a copy; whether all of them passed. Raises SystemExit when they cannot be run."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_DATABASE_FILE": str(place / ".hypothesis")}
    try:
        done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=longest, check=False)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(tests)} cannot be run:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    return done.returncode == 0


def is_caught(place: Path, mutant: Mutant) -> bool:
    """Put the wrong line into the copy, run the tests, and put the right one back."""
    path = place / mutant.file
    source = path.read_text()
    path.write_text(mutant.applied_to(source))
    try:
        return not run_tests(place, mutant.tests, LONGEST)
    finally:
        path.write_text(source)


def main(names: list[str]) -> int:
    """Run the named mutants, by default all; return the exit code."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        print(f"no such mutant: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(PROCESSES):
            copies.put(copy_source(Path(folder) / str(number)))

        def run(mutant: Mutant) -> bool:
            place = copies.get()
            try:
                caught = is_caught(place, mutant)
            finally:
                copies.put(place)
            print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant.name}", flush=True)
            return caught

        every_test = tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
        place = copies.get()
        if not run_tests(place, every_test, longest=5 * LONGEST):
            print("the tests fail without any mutant; run `make test` first", file=sys.stderr)
            return 2
        copies.put(place)
        with ThreadPoolExecutor(PROCESSES) as pool:
            caught = list(pool.map(run, chosen))
    print(f"{sum(caught)} of {len(chosen)} mutants caught in {time.monotonic() - started:.0f} s")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
