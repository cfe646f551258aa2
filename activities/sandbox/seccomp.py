"""The seccomp programs that decide which system calls a confined process may make.
Standard library only.

A process that only computes may make the calls of `_COMPUTING` and no other: it reads its
pipe, writes its pipe, takes memory and ends. Every other call fails with EPERM, also one
that a later kernel adds.

A command of the sandbox needs files and processes, so there the program lists what is denied. Calls
that reach another process, the network, another namespace or a rarely tested part of the kernel
fail with EPERM. Calls that programs can do without fail with ENOSYS: a file in memory belongs to no
process and no folder, so no limit would count it. Calls that change file metadata, which Landlock
cannot forbid, succeed and do nothing.
"""

import ctypes
import os
import platform
import signal
import struct

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
DENIED = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "personality": (135, 92),
    "shmget": (29, 194),
    "shmctl": (31, 195),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "semget": (64, 190),
    "semctl": (66, 191),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
_SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_METADATA = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
_COMPUTING = {
    "munmap": (11, 215),
    "mremap": (25, 216),
    "brk": (12, 214),
    "rt_sigreturn": (15, 139),
    "rt_sigprocmask": (14, 135),
    "rt_sigaction": (13, 134),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "gettimeofday": (96, 169),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
"""What a process that computes may call with any arguments. There is no futex: it has one thread,
so it never waits for another one; and no madvise, which can make pages of processes equal.
"""
_READ, _WRITE, _MMAP, _MPROTECT = (0, 63), (1, 64), (9, 222), (10, 226)
_CLOCK_GETTIME, _TGKILL = (228, 113), (234, 131)
_REQUESTS, _ANSWERS = 0, 1
_EXECUTABLE = 0x4
_OWN_CLOCKS = 16
"""From this number on, clocks are those of other processes or of devices."""
_UNAVAILABLE = {"clone3": (435, 435), "memfd_create": (319, 279), "memfd_secret": (447, 447)}
_CLONE, _PRLIMIT, _FCNTL = (56, 220), (302, 261), (72, 25)
_NEW_NAMESPACES = 0x7E020080
_OWNER_COMMANDS = (8, 10, 15)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX: with them the kernel sends a signal to any
process of the same user.
"""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
_X32 = 0x40000000


def computing_program(process: int) -> bytes:
    """Return the program of a process that computes: it reads descriptor 0 and writes descriptor 1.

    `process` is the id of the process, which may abort itself and signal nobody else. Raises
    OSError on an unknown architecture.
    """
    column, code = _opening()
    is_requests = _op(_EQUAL, _REQUESTS, 1, 0)
    code += _allow_if(_READ[column], [_argument(0), is_requests])
    is_answers = _op(_EQUAL, _ANSWERS, 1, 0)
    code += _allow_if(_WRITE[column], [_argument(0), is_answers])
    # No page may ever be executed that the process has written.
    is_not_executable = _op(_ANY_BIT, _EXECUTABLE, 0, 1)
    for numbers in (_MMAP, _MPROTECT):
        code += _allow_if(numbers[column], [_argument(2), is_not_executable])
    is_own_clock = _op(_AT_LEAST, _OWN_CLOCKS, 0, 1)
    code += _allow_if(_CLOCK_GETTIME[column], [_argument(0), is_own_clock])
    is_own_process = _op(_EQUAL, process, 0, 2)
    is_abort = _op(_EQUAL, signal.SIGABRT, 1, 0)
    code += _allow_if(_TGKILL[column], [_argument(0), is_own_process, _argument(2), is_abort])
    for numbers in _COMPUTING.values():
        code += _answer_call(numbers[column], _ALLOW)
    code.append(_fail(_EPERM))
    return b"".join(code)


def command_program(*, allow_signals: bool, allow_metadata: bool) -> bytes:
    """Return the program of a command of the sandbox. `allow_signals` where something else
    restricts signals; `allow_metadata` where modes, owners and times of files may change. Raises
    OSError on an unknown architecture.
    """
    column, code = _opening()
    answers = dict.fromkeys(DENIED.values(), _EPERM)
    if not allow_signals:
        answers |= dict.fromkeys(_SIGNALS.values(), _EPERM)
    answers |= dict.fromkeys(_UNAVAILABLE.values(), _ENOSYS)
    if not allow_metadata:
        answers |= dict.fromkeys(_METADATA.values(), 0)
    for numbers, answer in answers.items():
        number = numbers[column]
        if number is not None:
            code += _answer_call(number, _ERRNO | answer)

    # These calls are denied by their arguments.
    has_new_namespace = _op(_ANY_BIT, _NEW_NAMESPACES, 0, 1)
    code += _deny_if(_CLONE[column], 0, [has_new_namespace])
    is_of_another_process = _op(_EQUAL, 0, 1, 0)
    code += _deny_if(_PRLIMIT[column], 0, [is_of_another_process])
    if not allow_signals:
        sets_owner = [_op(_EQUAL, command, 0, 1) for command in _OWNER_COMMANDS]
        code += _deny_if(_FCNTL[column], 1, sets_owner)
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def refused_architecture() -> str:
    """Return why there is no program for this machine, or nothing if there is one."""
    machine = platform.machine()
    if machine in _ARCHITECTURES:
        return ""
    return f"there is a seccomp program for {' and '.join(_ARCHITECTURES)}, and none for {machine}"


def install(code: bytes) -> None:
    """Filter this process and all it will start, for good. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    body = ctypes.create_string_buffer(code)
    whole = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(body))
    )
    if libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(whole)), 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")


def _opening() -> tuple[int, list[bytes]]:
    """Return which column of the tables holds for this machine, and the steps that every program
    begins with: calls in the way of another architecture end the process or fail, and the number of
    the call is loaded. Raises OSError.
    """
    problem = refused_architecture()
    if problem:
        raise OSError(problem)
    column, architecture = _ARCHITECTURES[platform.machine()]
    is_ours = _op(_EQUAL, architecture, 1, 0)
    code = [_op(_LOAD, _ARCHITECTURE), is_ours, _op(_RETURN, _KILL), _op(_LOAD, _NUMBER)]
    if column == 0:
        is_x32 = _op(_AT_LEAST, _X32, 0, 1)
        code += [is_x32, _fail(_EPERM)]
    return column, code


def _answer_call(number: int, answer: int) -> list[bytes]:
    """Give that call the answer, whatever its arguments are."""
    return [_op(_EQUAL, number, 0, 1), _op(_RETURN, answer)]


def _allow_if(number: int, tests: list[bytes]) -> list[bytes]:
    """Decide that call by its arguments. The last test goes on to the next step to refuse, and
    skips it to allow; an earlier one may skip to the refusal.
    """
    is_call = _op(_EQUAL, number, 0, len(tests) + 2)
    return [is_call, *tests, _fail(_EPERM), _op(_RETURN, _ALLOW)]


def _deny_if(number: int, position: int, tests: list[bytes]) -> list[bytes]:
    """Deny that call if the argument at `position` passes a test; a test that is not
    passed skips one step.
    """
    denials: list[bytes] = []
    for test in tests:
        denials += [test, _fail(_EPERM)]
    is_call = _op(_EQUAL, number, 0, len(denials) + 2)
    return [is_call, _argument(position), *denials, _op(_RETURN, _ALLOW)]


def _fail(error: int) -> bytes:
    """End the call with that error."""
    return _op(_RETURN, _ERRNO | error)


def _argument(position: int) -> bytes:
    """Load the lower half of an argument of the call: all that the kernel takes of the
    arguments tested here.
    """
    return _op(_LOAD, _ARGUMENT + 8 * position)


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value & 0xFFFFFFFF)
