"""Where this package lies, and what comes with it: in a checkout, or wherever
a wheel was installed.
"""

import os
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent
"""The folder `sennit`, whose parent is on the path of whoever imports it. In a
checkout it holds links.
"""
CORPUS: Final = (PACKAGE / "examples" / "corpus").resolve()
PROGRAMS: Final = (PACKAGE / "examples" / "programs").resolve()
DEPLOY: Final = (PACKAGE / "deploy").resolve()


def program_in(path: str) -> str:
    """Return the file of a program: of a folder its `main.py`."""
    return str(Path(path) / "main.py") if Path(path).is_dir() else path


class ScriptFolders:
    """Where programs find each other and their modules: beside the script, in the
    folders of SENNIT_PROGRAMS, which is a list like PATH, and in the library. The first
    that has a name counts.
    """

    def __init__(self, beside: Path | None = None) -> None:
        team = [
            Path(folder).expanduser()
            for folder in os.environ.get("SENNIT_PROGRAMS", "").split(os.pathsep)
            if folder
        ]
        self._folders = [*([beside] if beside is not None else []), *team, PROGRAMS]

    def find(self, path: str) -> tuple[str, str] | None:
        """Return where a file is and its text, None if there is none: of
        `helpers.py`, `pack/dates.py`.

        All files of a package come from one folder. Raises OSError, UnicodeError.
        """
        folder = self._folder_of(path)
        file = folder / path if folder is not None else None
        if file is None or not file.is_file():
            return None
        return str(file), file.read_bytes().decode("utf-8-sig")

    def _folder_of(self, path: str) -> Path | None:
        """Return the first folder that has the module or the package that a file belongs to."""
        root = path.partition("/")[0].removesuffix(".py")
        for folder in self._folders:
            if (folder / f"{root}.py").is_file() or (folder / root / "__init__.py").is_file():
                return folder
        # A package without `__init__.py`, as Python has it.
        return next((folder for folder in self._folders if (folder / path).is_file()), None)

    def names(self) -> list[str]:
        """Return the names of all files."""
        return list(
            dict.fromkeys(
                path.stem for folder in self._folders for path in sorted(folder.glob("*.py"))
            )
        )

    def is_of_python(self, name: str) -> bool:
        """Whether Python itself has a module of that name."""
        return name in sys.stdlib_module_names

    def is_folder(self, name: str) -> bool:
        """Whether a folder has that name, and files of Python: it is a package."""
        return any(next((folder / name).glob("*.py"), None) is not None for folder in self._folders)
