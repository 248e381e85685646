"""Solvers, one class per type; get_solver() makes the one that a prototxt asks for."""

from __future__ import annotations

import ctypes
import time
import weakref
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple, Type

from ._engine import (
    BASE_LR,
    DISPLAY,
    ITER,
    LR,
    MAX_ITER,
    ON_STEP,
    Owner,
    check,
    encoded,
    guarded_steps,
    lib,
    made,
    whole,
)
from ._hosted import collected
from .pycaffe import Net, net_of_solver

NO_NCCL = (
    "this build has no NCCL: everything computes on the CPU; for several workers train with Spark or `crema "
    "train --ranks`"
)


class SolverParam:
    """solver.param: those fields of the solver's description that may change while it runs."""

    def __init__(self, solver: "Solver") -> None:
        self._solver = weakref.proxy(solver)
        self.layer_wise_reduce = True  # how GPUs exchange gradients; not used here

    base_lr = property(lambda self: self._solver._get(BASE_LR), lambda self, v: self._solver._set(BASE_LR, v))
    max_iter = property(lambda self: int(self._solver._get(MAX_ITER)), lambda self, v: self._solver._set(MAX_ITER, v))
    display = property(lambda self: int(self._solver._get(DISPLAY)), lambda self, v: self._solver._set(DISPLAY, v))


class Solver(Owner):
    """A train net, its test nets and the update. Made from a prototxt: SGDSolver(file), get_solver(file)."""

    _type: Optional[str] = None  # None: the file's
    _handle: int

    def __init__(self, solver_file: Any) -> None:
        with collected() as hosted:
            self._handle = made(lib.solver_create, encoded(solver_file), self._type.encode() if self._type else None)
        self.net = net_of_solver(made(lib.solver_net, self._handle, -1), hosted)
        self.test_nets = [
            net_of_solver(made(lib.solver_net, self._handle, i), hosted)
            for i in range(lib.solver_test_nets(self._handle))
        ]
        self.param = SolverParam(self)
        self._callbacks: List[Tuple[Callable[[], Any], Callable[[], Any]]] = []
        callbacks = self._callbacks
        # This is also where Python handles signals, so that Ctrl-C ends a run after the current iteration.
        self._start = ON_STEP(guarded_steps(lambda: [start() for start, _ in callbacks]))
        self._ready = ON_STEP(guarded_steps(lambda: [ready() for _, ready in callbacks]))
        check(lib.solver_set_callbacks(self._handle, self._start, self._ready, None))

    def __del__(self, free: Any = lib.solver_free) -> None:
        if hasattr(self, "_handle"):
            free(self._handle)

    def _get(self, setting: int) -> float:
        value = ctypes.c_double()
        check(lib.solver_get(self._handle, setting, ctypes.byref(value)))
        return value.value

    def _set(self, setting: int, value: float) -> None:
        check(lib.solver_set(self._handle, setting, float(value)))

    @property
    def iter(self) -> int:
        """Updates done."""
        return int(self._get(ITER))

    @property
    def lr(self) -> float:
        """The rate of the next update."""
        return self._get(LR)

    @property
    def type(self) -> str:
        return lib.solver_type(self._handle).decode()

    def step(self, iterations: int) -> None:
        check(lib.solver_step(self._handle, whole(iterations, "iterations", 0)))

    def solve(self, resume_file: Any = None) -> None:
        """To max_iter, from a .solverstate when one is named."""
        check(lib.solver_solve(self._handle, None if resume_file is None else encoded(resume_file)))

    def restore(self, state_file: Any) -> None:
        check(lib.solver_restore(self._handle, encoded(state_file)))

    def snapshot(self) -> None:
        """snapshot_prefix_iter_N.caffemodel and .solverstate."""
        check(lib.solver_snapshot(self._handle))

    def apply_update(self) -> None:
        """One update of net's parameters by their diffs; ends the iteration."""
        check(lib.solver_apply_update(self._handle))

    def share_weights(self, net: Net) -> None:
        """Makes `net` use the weights of this solver's net."""
        net.share_with(self.net)

    def add_callback(self, on_start: Any, on_gradients_ready: Optional[Callable[[], Any]] = None) -> None:
        """Calls on_start() in every iteration before its passes, on_gradients_ready() before its update."""
        if on_gradients_ready is None:
            raise RuntimeError(
                "add_callback(on_start, on_gradients_ready) takes two callables; with one argument it takes an NCCL, "
                f"and {NO_NCCL}"
            )
        self._callbacks.append((on_start, on_gradients_ready))


class SGDSolver(Solver):
    _type = "SGD"


class NesterovSolver(Solver):
    _type = "Nesterov"


class AdaGradSolver(Solver):
    _type = "AdaGrad"


class RMSPropSolver(Solver):
    _type = "RMSProp"


class AdaDeltaSolver(Solver):
    _type = "AdaDelta"


class AdamSolver(Solver):
    _type = "Adam"


_KINDS: Dict[str, Type[Solver]] = {k._type: k for k in Solver.__subclasses__() if k._type}


def get_solver(solver_file: Any) -> Solver:
    """Of the class that Caffe has for the solver's type; a type that Caffe does not have is a Solver."""
    solver = Solver(solver_file)
    solver.__class__ = _KINDS.get(solver.type, Solver)
    return solver


class NCCL:
    """For gradients of several GPUs, of which there are none here: every use raises an error that says so."""

    def __init__(self, solver: Optional[Solver] = None, uid: Any = None) -> None:
        raise RuntimeError(NO_NCCL)

    @staticmethod
    def new_uid() -> NoReturn:
        raise RuntimeError(NO_NCCL)

    def bcast(self) -> NoReturn:
        raise RuntimeError(NO_NCCL)


class Timer:
    """Measures time: start(), stop(), then ms, the milliseconds between them, or so far while it runs."""

    def __init__(self) -> None:
        self._started: Optional[float] = None
        self._elapsed = 0.0

    def start(self) -> None:
        self._started = time.perf_counter()

    def stop(self) -> None:
        if self._started is not None:
            self._elapsed, self._started = time.perf_counter() - self._started, None

    @property
    def ms(self) -> float:
        return 1000 * (self._elapsed if self._started is None else time.perf_counter() - self._started)
