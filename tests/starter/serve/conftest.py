"""What the servers for other agents are given."""

from pathlib import Path

import pytest
from doubles.callers import ANN, BOB


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """The file with the tokens of two callers."""
    path = tmp_path / "tokens.toml"
    path.write_text(f'ann = "{ANN}"\nbob = "{BOB}"\n')
    path.chmod(0o600)
    return path
