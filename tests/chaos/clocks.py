"""The wall clock of a running process jumps, and nobody else's: the functions that it reads time by are in a page that
the kernel maps into it (the vDSO), and others are written there, in its own copy, which ask the kernel and add to it.
Against a library before its own (LD_PRELOAD): the executable is linked statically. Against `date -s`: all that runs on
this machine would jump. The steady clock is left alone, as it is where a person or NTP sets a machine's time; so are
waits within the kernel until a time of the wall clock, which the project has none of (scripts/check_layers.py).
"""

import contextlib
import ctypes
import functools
import os
import pathlib
import platform
import signal
import struct
import subprocess
import sys
import time

# Each is called as the system call of its number, and adds OFFSET, 8 bytes of seconds, to what that gave.
OFFSET = b"OOOOOOOO"
CODE = {
    # mov eax, 228; syscall; test edi, edi (CLOCK_REALTIME); jne +13; mov rcx, OFFSET; add [rsi], rcx; ret
    "__vdso_clock_gettime": b"\xb8\xe4\0\0\0\x0f\x05\x85\xff\x75\x0d\x48\xb9" + OFFSET + b"\x48\x01\x0e\xc3",
    # mov eax, 96; syscall; test rdi, rdi; je +13; mov rcx, OFFSET; add [rdi], rcx; ret
    "__vdso_gettimeofday": b"\xb8\x60\0\0\0\x0f\x05\x48\x85\xff\x74\x0d\x48\xb9" + OFFSET + b"\x48\x01\x0f\xc3",
    # mov eax, 201; syscall; mov rcx, OFFSET; add rax, rcx; test rdi, rdi; je +3; mov [rdi], rax; ret
    "__vdso_time": b"\xb8\xc9\0\0\0\x0f\x05\x48\xb9" + OFFSET + b"\x48\x01\xc8\x48\x85\xff\x74\x03\x48\x89\x07\xc3",
}


_READS = "import sys, time; sys.stdin.read(1); print(time.time())"


@functools.cache
def possible():
    """Why it is not, or None: tried with a process that tells the time."""
    if platform.machine() != "x86_64":
        return f"the functions of clocks.py are of x86_64, and this is {platform.machine()}"
    try:
        places()
    except (OSError, AttributeError) as e:
        return f"this system gives no functions of time to write over: {e}"
    command, pipe = [sys.executable, "-c", _READS], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        moved = jump(process.pid, 1_000_000)
        said = process.communicate("x", 20)[0]
    if not moved or not said or abs(float(said) - time.time() - 1_000_000) > 1000:
        return "what is written over this system's functions of time does not move another process's clock"
    return None


def page(pid):
    """Where its vDSO begins and ends, or None when it is gone."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            if line.endswith("[vdso]"):
                begin, end = line.split()[0].split("-")
                return int(begin, 16), int(end, 16)
    return None


def places():
    """(function, how far behind the beginning): the same in all processes that a kernel runs."""
    library, own = ctypes.CDLL("linux-vdso.so.1"), page("self")[0]
    return [(name, ctypes.cast(library[name], ctypes.c_void_p).value - own) for name in CODE]


def jump(pid, seconds):
    """Its wall clock is so many seconds ahead from now on, whatever was before. Returns whether it is: not of a process
    that is stopped, or has ended.
    """
    for _ in range(100):
        with contextlib.suppress(OSError):
            if stopped(pid):
                return False
            os.kill(pid, signal.SIGSTOP)
            try:
                begin, end = page(pid) or (0, 0)
                if begin and not any(begin <= at < end for at in instructions(pid)):
                    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
                        for name, at in places():
                            memory.seek(begin + at)
                            memory.write(CODE[name].replace(OFFSET, struct.pack("<q", seconds)))
                    return True
            finally:
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.001)
    return False


def stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"


def instructions(pid):
    """The addresses at which its threads stand, all of them stopped."""
    found, end = [], time.monotonic() + 5
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        while (said := (thread / "syscall").read_text().split())[0] == "running":
            if time.monotonic() > end:
                raise OSError("a thread does not stop")
            time.sleep(0.0005)
        found.append(int(said[-1], 16))
    return found
