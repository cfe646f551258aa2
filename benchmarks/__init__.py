"""What Sennit costs, measured on the machine it runs on: `python -m benchmarks`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the model server that benchmarks share with the tests
