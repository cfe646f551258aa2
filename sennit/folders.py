"""Where this package lies, and what comes with it: in a checkout, or wherever a wheel was installed."""

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent
"""The folder `sennit`, whose parent is on the path of whoever imports it. In a checkout it holds links."""
CORPUS: Final = (PACKAGE / "examples" / "corpus").resolve()
PROGRAMS: Final = (PACKAGE / "examples" / "programs").resolve()
DEPLOY: Final = (PACKAGE / "deploy").resolve()
