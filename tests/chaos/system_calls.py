"""A program that is killed at the n-th system call of one of its threads, by ptrace, which needs nothing installed. The
program that is tested is linked statically: a library before its own (LD_PRELOAD) would not be loaded.
"""

import contextlib
import ctypes
import os
import signal
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
TRACEME, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
TRACESYSGOOD, EXITKILL = 0x1, 0x100000
ENTRY = 1  # ptrace_syscall_info.op


class Info(ctypes.Structure):
    """struct ptrace_syscall_info, at an entry: the same on every architecture (Linux 5.3)."""

    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
        ("rest", ctypes.c_uint64),
    ]


def ptrace(request, pid, address=None, data=None):
    result = LIBC.ptrace(request, pid, address, data)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x}: {os.strerror(ctypes.get_errno())}")
    return result


def started(folder, log, command):
    """A child that stops before the first instruction of the command."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.chdir(folder)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0), os.dup2(out, 1), os.dup2(out, 2)
        ptrace(TRACEME, 0)
        os.execv(command[0], command)
    finally:
        os._exit(127)


def text_at(pid, address):
    """The beginning of a string in its memory, b"" where there is none."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(256).split(b"\0")[0]
    except (OSError, ValueError, OverflowError):
        return b""


class Traced:
    """A program, call by call of its first thread; the others run as they do. It ends with this object, and with this
    process.
    """

    def __init__(self, folder, log, command, seconds=60):
        self.pid, self.status, self.ended = started(folder, log, command), 0, False
        self.watchdog = threading.Timer(seconds, self.kill)
        self.watchdog.start()
        self.wait()
        if not self.ended:
            ptrace(SETOPTIONS, self.pid, None, TRACESYSGOOD | EXITKILL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watchdog.cancel()
        self.kill()
        while not self.ended:
            self.wait()

    def kill(self):
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        _, self.status = os.waitpid(self.pid, 0)
        self.ended = os.WIFEXITED(self.status) or os.WIFSIGNALED(self.status)

    def calls(self):
        """The calls that it is about to make, until it ends: (number, arguments)."""
        passed, info = 0, Info()
        while not self.ended:
            with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
                ptrace(SYSCALL, self.pid, None, passed)
            self.wait()
            passed = 0
            if self.ended:
                return
            if os.WSTOPSIG(self.status) != signal.SIGTRAP | 0x80:
                passed = os.WSTOPSIG(self.status) if os.WSTOPSIG(self.status) != signal.SIGTRAP else 0
                continue
            ptrace(GET_SYSCALL_INFO, self.pid, ctypes.sizeof(info), ctypes.addressof(info))
            if info.op == ENTRY:
                yield info.number, list(info.arguments)


def possible():
    """Why no program can be traced here; "" when one can."""
    try:
        with Traced("/", "/dev/null", ["/bin/true"]) as program:
            return "" if any(program.calls()) else "the system refuses ptrace"
    except OSError as e:
        return f"the system refuses {e}"


def names(program, arguments, part):
    """Whether a call has a path, or another text, with that part."""
    return any(a > 4096 and part in text_at(program.pid, a) for a in arguments[:4])


def calls_about(part, folder, log, command):
    """How many calls there are from the first to the last one that names `part`."""
    first = last = None
    with Traced(folder, log, command) as program:
        for at, (_, arguments) in enumerate(program.calls()):
            if names(program, arguments, part):
                first, last = at if first is None else first, at
    return last - first + 1


def killed_at(n, part, folder, log, command):
    """Kills it before the n-th call from the first one on that names `part`, which is number 0; False where it has
    ended before.
    """
    count = -1
    with Traced(folder, log, command) as program:
        for _, arguments in program.calls():
            if count >= 0 or names(program, arguments, part):
                count += 1
            if count == n:
                return True
    return False
