"""Settings of the whole process: log, mode, seeds, and this process's place among several solvers."""

from __future__ import annotations

import os
from typing import List, NoReturn

from ._engine import check, lib, whole
from .solver import NO_NCCL

__version__ = lib.version().decode()
_NO_GPU = (
    "Cannot use GPU in CPU-only Caffe: check mode. Everything here computes on the CPU; remove the call, or "
    "call set_mode_cpu()"
)


def init_log(level: int = 0, stderr: bool = True) -> None:
    """Log lines of `level` and above go to stderr: 0 all, 1 warnings, 2 errors."""
    lib.set_log_level(int(level))


def log(message: str) -> None:
    lib.log(0, message.encode())


def set_mode_cpu() -> None:
    """Has no effect: there is no other mode."""


def set_mode_gpu() -> NoReturn:
    raise RuntimeError(_NO_GPU)


def set_device(device: int) -> NoReturn:
    raise RuntimeError(_NO_GPU)


def set_random_seed(seed: int) -> None:
    """Seeds nets and solvers made from now on; each gets a seed of its own that follows from this one."""
    check(lib.set_random_seed(int(seed) & 0xFFFFFFFFFFFFFFFF))


def set_threads(threads: int) -> None:
    """Sets the number of threads of nets and solvers made from now on; 0: all cores. Results do not depend on it."""
    check(lib.set_threads(whole(threads, "threads")))


def layer_type_list() -> List[str]:
    return [lib.layer_type(i).decode() for i in range(lib.layer_types())]


def has_nccl() -> bool:
    return False


def solver_count() -> int:
    return 1


def set_solver_count(count: int) -> None:
    if count != 1:
        raise RuntimeError(NO_NCCL)


def solver_rank() -> int:
    return 0


def set_solver_rank(rank: int) -> None:
    if rank != 0:
        raise RuntimeError(NO_NCCL)


def set_multiprocess(several: bool) -> None:
    if several:
        raise RuntimeError(NO_NCCL)


init_log(int(os.environ.get("GLOG_minloglevel") or 0))  # noqa: SIM112  glog's own name
