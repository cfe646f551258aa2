"""What a worker notes of the modules that it has imported, and of what its kernel lacks."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from sennit.activities.sandbox import confinement
from sennit.activities.sandbox.confinement import Confinement
from sennit.workers.settings import WrongSetting, read_settings
from sennit.workers.wiring import confinement_note

LACKING = Confinement(7, seccomp=False, missing="programs run without seccomp: no such kernel")
CODE = """
import sys
from pathlib import Path
from sennit.workers.wiring import note_imported
import acme.search
note, folder = Path(sys.argv[1]), Path(sys.argv[2])
note_imported(note, ["acme.search"], [folder])
first = note.read_text()
(folder / "helper.py").write_text("a = 2")
import late
note_imported(note, ["acme.search"], [folder])
print(first)
"""


def test_only_what_was_imported_is_noted_and_as_it_was_then(tmp_path: Path) -> None:
    tools, lib = tmp_path / "tools", tmp_path / "lib"
    files = {
        tools / "helper.py": "a = 1",
        tools / "late.py": "",
        tools / "unused.py": "",
        lib / "acme" / "__init__.py": "",
        lib / "acme" / "search.py": "import helper",
        lib / "acme" / "unused.py": "",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tools), str(lib), *sys.path])}
    note = tmp_path / "modules.json"
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(note), str(tools)], env=environ, stdout=subprocess.PIPE, check=True
    )
    at_first = [lib / "acme" / "__init__.py", lib / "acme" / "search.py", tools / "helper.py"]
    assert json.loads(done.stdout) == {str(path): sha256(files[path].encode()).hexdigest() for path in at_first}
    later = [*at_first, tools / "late.py"]
    assert json.loads(note.read_text()) == {str(path): sha256(files[path].encode()).hexdigest() for path in later}
    assert note.stat().st_mode & 0o077 == 0


def test_the_note_is_a_setting_of_workers(tmp_path: Path) -> None:
    assert read_settings({"SENNIT_IMPORTED": str(tmp_path / "m.json")}).imported == tmp_path / "m.json"


@pytest.mark.parametrize("setting", ["auto", "landlock", "off"])
def test_programs_go_without_what_the_kernel_lacks_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setattr(confinement, "find_confinement", lambda: LACKING)
    assert confinement_note(read_settings({"SENNIT_SANDBOX": setting})) == LACKING.missing


def test_under_strict_a_kernel_that_lacks_something_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = read_settings({"SENNIT_SANDBOX": "strict"})
    monkeypatch.setattr(confinement, "find_confinement", lambda: LACKING)
    with pytest.raises(WrongSetting, match=r"^SENNIT_SANDBOX='strict': programs run without seccomp: no such kernel; "):
        confinement_note(strict)
    monkeypatch.setattr(confinement, "find_confinement", lambda: Confinement(7, seccomp=True))
    assert confinement_note(strict) == ""
