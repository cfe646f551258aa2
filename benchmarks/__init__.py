"""What Sennit costs, measured on the machine it runs on: `python -m benchmarks`."""

import sys
from pathlib import Path

# The model server that benchmarks share with the tests.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
