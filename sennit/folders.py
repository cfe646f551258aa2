"""Where this package lies, and what comes with it: in a checkout, or wherever a wheel was installed."""

import os
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent
"""The folder `sennit`, whose parent is on the path of whoever imports it. In a checkout it holds links."""
CORPUS: Final = (PACKAGE / "examples" / "corpus").resolve()
PROGRAMS: Final = (PACKAGE / "examples" / "programs").resolve()
DEPLOY: Final = (PACKAGE / "deploy").resolve()


class ScriptFolders:
    """Where programs find each other and their modules: beside the script, in the folders of SENNIT_PROGRAMS, which is
    a list like PATH, and in the library. The first that has a name counts.
    """

    def __init__(self, beside: Path | None = None) -> None:
        team = [
            Path(folder).expanduser() for folder in os.environ.get("SENNIT_PROGRAMS", "").split(os.pathsep) if folder
        ]
        self._folders = [*([beside] if beside is not None else []), *team, PROGRAMS]

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the path and the text of the file of that name, None if there is none.

        Raises OSError, UnicodeError.
        """
        path = next((path for folder in self._folders if (path := folder / f"{name}.py").is_file()), None)
        return (str(path), path.read_bytes().decode("utf-8-sig")) if path is not None else None

    def names(self) -> list[str]:
        """Return the names of all files."""
        return list(dict.fromkeys(path.stem for folder in self._folders for path in sorted(folder.glob("*.py"))))

    def is_folder(self, name: str) -> bool:
        """Whether a folder has that name."""
        return any((folder / name).is_dir() for folder in self._folders[:-1])
