"""What code in a confined process may try: to reach files, the network, other processes or the kernel, to take the
machine, and to deceive the worker that reads its answers.

Each is the body of a function that returns what it got. `worker` is the process id of the worker, `secret` a file,
`folder` a folder that everybody may write to, `port` one that listens.
"""

from enum import Enum
from typing import NamedTuple

SECRET = "canary-77ab"
"""What stands in that file."""


class Held(Enum):
    """How an attack ends when it is confined."""

    REFUSED = "the kernel refuses it, and the process lives on"
    MEMORY = "it meets the bound on memory"
    TIME = "the kernel ends the process after its processor time"
    CRASH = "it ends its own process"
    DISBELIEVED = "the worker kills the process for what it writes"
    OWN = "it gets what is its own anyway"


class Attack(NamedTuple):
    """An attack. `works` says that it succeeds in any process that is not confined, where it does no harm: so the test
    would notice an attack that fails for another reason. `words` are in the error of one that is refused.
    """

    code: str
    held: Held = Held.REFUSED
    works: bool = True
    words: str = "[Errno 1] Operation not permitted"


FILES = {
    "read a file": Attack("return open(secret).read()"),
    "read a file past Python": Attack("return call(number(257, 56), -100, secret.encode(), 0, 0)"),
    "open a file by openat2": Attack("return call(437, -100, secret.encode(), bytes(24), 24)"),
    "read its own settings": Attack("return len(open('/proc/self/environ').read()) + 1"),
    "read the worker's settings": Attack("return open(f'/proc/{worker}/environ', 'rb').read(1)"),
    "write a file": Attack("return open(folder + '/written', 'w').write('x')"),
    "make a folder": Attack("return os.mkdir(folder + '/made')"),
    "remove a file": Attack("return os.unlink(folder + '/spare')"),
    "rename a file": Attack("return os.rename(folder + '/spare', folder + '/other')"),
    "change the mode of a file": Attack("return os.chmod(folder + '/spare', 0o777)"),
    "list a folder": Attack("return os.listdir('/')"),
    "learn whether a file exists": Attack("return os.stat(secret)"),
    "leave its folder": Attack("return os.chdir('/usr')"),
    "import a module": Attack("import sqlite3\nreturn sqlite3", words="No module named"),
    "import what is not the worker's": Attack(
        "sys.path.insert(0, folder)\nimport planted\nreturn planted", words="No module named"
    ),
    "use a descriptor of the worker": Attack(
        "refusal = None\nfor place in range(2, 64):\n    try: return os.write(place, b'')\n"
        "    except OSError as error: refusal = error\nraise refusal",
        works=False,
    ),
    "read its pipe of answers": Attack("return os.read(1, 1)", works=False),
    "write its pipe of requests": Attack("return os.write(0, b'x')", works=False),
    "have more descriptors": Attack("return os.dup(0)"),
    "make a pipe": Attack("return os.pipe()"),
    "keep a file in memory": Attack("return os.memfd_create('x')"),
}

NETWORK = {
    "connect": Attack("return socket.create_connection(('127.0.0.1', port), 2)"),
    "ask a name server": Attack("return socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 53))"),
    "reach a local socket": Attack("return socket.socket(socket.AF_UNIX)"),
    "make a pair of sockets": Attack("return socket.socketpair()"),
    "listen": Attack("return socket.create_server(('127.0.0.1', 0))"),
}

PROCESSES = {
    "fork": Attack("process = os.fork()\nif not process: os._exit(0)\nreturn process"),
    "fork past Python": Attack(
        "process = call(number(57, 220), 17, 0, 0, 0, 0)\nif not process: os._exit(0)\nreturn process"
    ),
    "start a thread": Attack(
        "thread = threading.Thread(target=int)\nthread.start()\nreturn thread", words="can't start new thread"
    ),
    "become a program": Attack("os.execv('/bin/echo', ['echo', 'got a program'])"),
    "start a program": Attack("return subprocess.check_output(['/bin/echo', 'x'])"),
    "spawn a program": Attack("return os.posix_spawn('/bin/true', ['true'], {})"),
    "signal the worker": Attack("os.kill(worker, 0)\nreturn True"),
    "signal its parent": Attack("os.kill(os.getppid(), 0)\nreturn True", works=False),
    "kill all it may": Attack("os.kill(-1, 9)\nreturn True", works=False),
    "signal its group": Attack("os.killpg(0, 0)\nreturn True"),
    "queue a signal": Attack("return call(number(129, 138), worker, 0, bytes(128)) + 1", works=False),
    "signal through a thread of the worker": Attack("return call(number(234, 131), worker, worker, 0) + 1"),
    "trace its parent": Attack("return call(number(101, 117), 16, os.getppid(), 0, 0) + 1", works=False),
    "read the memory of the worker": Attack(
        "return call(number(310, 270), worker, bytes(16), 1, bytes(16), 1, 0) + 1", works=False
    ),
    "hold the worker by a descriptor": Attack("return call(434, worker, 0)"),
    "slow the worker down": Attack("os.setpriority(0, worker, os.getpriority(0, worker))\nreturn True"),
    "move the worker to a processor": Attack("return os.sched_getaffinity(worker)"),
    "limit the worker": Attack("return resource.prlimit(worker, resource.RLIMIT_NOFILE)", works=False),
    "time the worker's work": Attack("return time.clock_gettime((~worker << 3) | 2) > 0"),
}

KERNEL = {
    "run code it has written": Attack(
        "return mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)"
    ),
    "make written code executable": Attack(
        "place = mmap.mmap(-1, 4096)\naddress = ctypes.addressof(ctypes.c_char.from_buffer(place))\n"
        "return call(number(10, 226), address, 4096, 5) + 1"
    ),
    "make code executable by a key": Attack("return call(number(329, 288), 0, 0, 5, -1) + 1"),
    "make a namespace": Attack("return call(number(272, 97), 0x10000000) + 1", works=False),
    "use io_uring": Attack("return call(425, 4, bytes(200))", works=False),
    "trace the kernel": Attack(
        "refusal = None\nfor which in (number(321, 280), number(298, 241), number(323, 282), number(250, 219)):\n"
        "    try: return call(which, 0, 0, 0, 0, 0)\n"
        "    except OSError as error: refusal = error\n"
        "    if refusal.errno != 1: return refusal.errno\nraise refusal",
        works=False,
    ),
    "wait on memory it shares": Attack("return call(number(202, 98), bytes(4), 1, 1, 0, 0, 0) + 1"),
    "compare pages with others": Attack("place = mmap.mmap(-1, 4096)\nplace.madvise(mmap.MADV_NORMAL)\nreturn True"),
    "lift its limits": Attack(
        "resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))\nreturn True", works=False, words="not allowed to raise"
    ),
    "drop its filter": Attack("return call(number(157, 167), 22, 0, 0, 0, 0) + 1", works=False),
    "add a filter of its own": Attack("return call(number(317, 277), 1, 0, 0) + 1", works=False),
    "become another user": Attack("return os.setuid(os.getuid())"),
    "wait for ever": Attack("time.sleep(0.001)\nreturn True"),
    "get random numbers": Attack("return os.urandom(8)"),
    "call in the way of another architecture": Attack("return call(0x40000000 + 39)", works=False),
    "call what no kernel has yet": Attack("return call(9999) + 1", works=False),
    "run a program by a pickle": Attack("return pickle.loads(b'cposix\\nlistdir\\n(S\"/\"\\ntR.')"),
    "use another interpreter": Attack("import subprocess\nreturn subprocess.Popen([sys.executable, '-c', ''])"),
}

MACHINE = {
    "a fork bomb": Attack("while True:\n    os.fork()", works=False),
    "a fork bomb that does not give up": Attack(
        "while True:\n    try: os.fork()\n    except OSError: pass", Held.TIME, works=False
    ),
    "a memory bomb": Attack("return len(bytearray(20_000_000_000))", Held.MEMORY, works=False),
    "a memory bomb of small parts": Attack(
        "parts = []\nwhile True: parts.append('y' * 1000 + str(len(parts)))", Held.MEMORY, works=False
    ),
    "a memory bomb of mapped pages": Attack(
        "kept = []\nwhile True: kept.append(mmap.mmap(-1, 1 << 24))", works=False, words="[Errno 12] Cannot allocate"
    ),
    "a number without end": Attack("return 10 ** (10 ** 9)", Held.TIME, works=False),
    "a loop": Attack("while True: pass", Held.TIME, works=False),
    "a loop that catches everything": Attack(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass", Held.TIME, works=False
    ),
    "a loop that ignores the first signal": Attack(
        "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", Held.TIME, works=False
    ),
    "recursion without a limit": Attack(
        "sys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1)\nreturn f(0)", Held.CRASH, works=False
    ),
    "a stack of C that overflows": Attack(
        "sys.setrecursionlimit(10 ** 9)\nnested = []\n"
        "for _ in range(10 ** 6): nested = [nested]\nreturn len(repr(nested))",
        Held.CRASH,
        works=False,
    ),
    "a pattern without end": Attack("return re.match('(a+)+$', 'a' * 40 + 'b')", Held.TIME, works=False),
    "a null pointer": Attack("return ctypes.string_at(0)", Held.CRASH, works=False),
    "bytecode of its own": Attack(
        "def f(): pass\n"
        "f.__code__ = f.__code__.replace(co_code=bytes([151, 0, 100, 200, 83, 0] * 3), co_consts=())\nreturn f()",
        Held.CRASH,
        works=False,
    ),
    "an abort": Attack("os.abort()", Held.CRASH, works=False),
    "an exit": Attack("os._exit(0)", Held.CRASH, works=False),
}

LIES = {
    "two answers": Attack(
        r"""os.write(1, b'{"seconds": 0, "is_last": false, "value": 1}\n' * 2)""", Held.DISBELIEVED, works=False
    ),
    "no JSON": Attack(r"os.write(1, b'\0\xff{{{\n'); os.read(0, 1)", Held.DISBELIEVED, works=False),
    "JSON that is no answer": Attack(r"os.write(1, b'[1, 2]\n'); os.read(0, 1)", Held.DISBELIEVED, works=False),
    "an answer of wrong types": Attack(
        r"""os.write(1, b'{"seconds": [], "is_last": 1, "value": 1}\n'); os.read(0, 1)""", Held.DISBELIEVED, works=False
    ),
    "an answer nested without end": Attack(
        r"os.write(1, b'[' * 100_000 + b'\n'); os.read(0, 1)", Held.DISBELIEVED, works=False
    ),
    "a number of a million digits": Attack(
        r"""os.write(1, b'{"value": ' + b'9' * 1_000_000 + b'}\n'); os.read(0, 1)""", Held.DISBELIEVED, works=False
    ),
    "an answer without end": Attack("while True: os.write(1, bytes(65_536))", Held.DISBELIEVED, works=False),
    "no answer": Attack("os.read(0, 1)", Held.DISBELIEVED, works=False),
    "the end of its answers": Attack("os.close(1)", works=False),
}

SELF = {
    "its own memory": Attack("return len(gc.get_objects())", Held.OWN),
    "the frames that run it": Attack("return sys._getframe(1)", Held.OWN),
    "the time": Attack("return time.time()", Held.OWN),
    "an address as a random number": Attack("return id(object())", Held.OWN),
    "its own number": Attack("return os.getpid()", Held.OWN),
}

ATTACKS: dict[str, Attack] = {**FILES, **NETWORK, **PROCESSES, **KERNEL, **MACHINE, **LIES, **SELF}
