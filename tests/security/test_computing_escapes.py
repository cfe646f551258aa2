"""Code that wants out of a process that computes: every way is tried for real, in a process that runs any code. The
same attack succeeds in a process that is not confined, where it does no harm there.
"""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from doubles.attacks import ATTACKS, SECRET, Attack, Held

from sennit.activities.sandbox.computing import ComputingParent, NoAnswer, ProcessEnded, Service
from sennit.activities.sandbox.confinement import Confinement, find_confinement

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is part of Linux")
ROOT = Path(__file__).parents[2]
MODULE = "tests.doubles.attack_service"
SERVICE = Service(MODULE, memory=256 << 20, seconds=0, answer_bytes=100_000)
MEMORY_KB = 50_000
ALONE = Confinement(0, seccomp=True)
"""As in a pod without Landlock, where the code has the worker's own user: the list of system calls alone."""


CASES = [
    *(("all", name) for name in ATTACKS),
    *(("seccomp", name) for name, attack in ATTACKS.items() if attack.held is not Held.TIME),  # the same limit
]


@pytest.fixture(scope="module")
def parent(request: pytest.FixtureRequest) -> Iterator[ComputingParent]:
    made = ComputingParent(SERVICE, find_confinement if request.param == "all" else lambda: ALONE)
    yield made
    made.close()


def asked(parent: ComputingParent, attack: Attack, facts: dict[str, Any]) -> str:
    """Return what an attack says of itself, or how its process ended."""
    process = parent.copy()
    try:
        patience = 2.0 if attack.held is Held.DISBELIEVED else 60.0
        return str(process.ask(json.dumps({"code": attack.code, "facts": facts}).encode(), patience))
    except ProcessEnded as end:
        return f"ended {end.status}"
    except NoAnswer as error:
        return f"disbelieved: {error}"
    finally:
        process.end()


@pytest.mark.parametrize(("parent", "name"), CASES, indirect=["parent"])
def test_an_attack_gets_nothing(parent: ComputingParent, facts: dict[str, Any], name: str) -> None:
    attack = ATTACKS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = asked(parent, attack, facts)
    match attack.held:
        case Held.REFUSED:
            assert said.startswith("denied ")
            assert attack.words in said
        case Held.MEMORY:
            assert said == "denied MemoryError: "
        case Held.TIME:
            assert said in (f"ended {-signal.SIGXCPU}", f"ended {-signal.SIGKILL}")
        case Held.CRASH:  # or an error before that, as later Pythons have it
            assert said.startswith(("ended ", "denied "))
        case Held.DISBELIEVED:
            assert said.startswith("disbelieved: ")
        case Held.OWN:
            assert said.startswith("got ")
    assert SECRET not in said
    assert sorted(each.name for each in Path(facts["folder"]).iterdir()) == ["planted.py", "secret", "spare"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KB
    assert asked(parent, Attack("return 7"), facts) == "got 7", "the next process is harmed"


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.works])
def test_the_same_attack_succeeds_where_nothing_is_confined(facts: dict[str, Any], name: str) -> None:
    """Else an attack might fail because it is wrong."""
    request = json.dumps({"code": ATTACKS[name].code, "facts": facts})
    done = subprocess.run(
        [sys.executable, "-m", MODULE, request], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("got "), done.stdout + done.stderr


WORKER = f"""
import json, threading
from sennit.activities.sandbox.computing import ComputingParent, Service
parent = ComputingParent(Service({MODULE!r}, 256 << 20, 60, 1_000))
process = parent.copy()
request = json.dumps({{"code": "while True: pass", "facts": {{}}}}).encode()
threading.Thread(target=process.ask, args=(request, 600)).start()
print("asked", flush=True)
"""


def test_nothing_that_computes_outlives_a_killed_worker() -> None:
    with subprocess.Popen([sys.executable, "-c", WORKER], cwd=ROOT, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"asked\n"
        below = psutil.Process(worker.pid).children(recursive=True)
        assert len(below) == 2, "the parent and its copy"
        worker.kill()
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []


@pytest.mark.parametrize("parent", ["all", "seccomp"], indirect=True)
def test_a_process_ends_when_nobody_waits_for_it(parent: ComputingParent) -> None:
    """Also one that computes and looks at neither of its pipes."""
    parent.copy().end()  # so there is a parent
    assert parent._process is not None
    copies = psutil.Process(parent._process.pid).children
    before = copies()
    process = parent.copy()
    [copy] = [each for each in copies() if each not in before]
    request = json.dumps({"code": "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", "facts": {}})
    with pytest.raises(NoAnswer, match="has not answered in time"):
        process.ask(request.encode(), 0.1)
    _, alive = psutil.wait_procs([copy], timeout=60)
    assert alive == []


def test_there_are_sixty_four() -> None:
    assert len(ATTACKS) >= 64
