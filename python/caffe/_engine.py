"""The engine's C interface (api/crema.h) by ctypes: the library, its functions, errors and memory. ctypes releases
the GIL during every call and takes it again for callbacks.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import pathlib
import threading
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Generator, List, Sequence, Tuple

import numpy as np

_HOST = 8  # CREMA_HOST: one of our callbacks raised

RESHAPE, FORWARD, BACKWARD = range(3)  # crema_pass
LAYERS, LAYER_TYPES, BLOBS, INPUTS, OUTPUTS, BOTTOMS, TOPS = range(7)  # crema_list
ITER, LR, BASE_LR, MAX_ITER, DISPLAY = range(5)  # crema_setting
NAME, MODULE, CLASS, PARAM_STR = range(4)  # crema_layer_string

# The first argument is the interface's `user`, which Python does not need: a bound function knows its objects.
ON_LAYER = CFUNCTYPE(c_int, c_void_p, c_int)
ON_STEP = CFUNCTYPE(c_int, c_void_p)
ON_MAKE = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_int64))
ON_RUN = CFUNCTYPE(c_int, c_void_p, c_int64, c_int, POINTER(c_int))


class LayerHost(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("make", ON_MAKE), ("run", ON_RUN)]


def _load() -> ctypes.CDLL:
    path = pathlib.Path(__file__).with_name("libcrema.so")
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError as e:
        raise ImportError(
            f"{path} cannot be loaded ({e}); `pip install .` in Crema's source tree builds and installs it, "
            "cmake with -DCREMA_PYTHON=ON makes build/<preset>/python"
        ) from e


_library = _load()
_handle, _out, _ints = c_void_p, POINTER(c_void_p), POINTER(c_int)
# name: (result, arguments). A c_int result of a function that can fail is a crema_status.
_FUNCTIONS = {
    "version": (c_char_p, []),
    "last_error": (c_char_p, []),
    "set_log_level": (None, [c_int]),
    "log": (None, [c_int, c_char_p]),
    "set_random_seed": (c_int, [c_uint64]),
    "set_threads": (c_int, [c_int]),
    "layer_types": (c_int, []),
    "layer_type": (c_char_p, [c_int]),
    "blob_shape": (c_int, [_handle, _ints, _ints]),
    "blob_reshape": (c_int, [_handle, c_int, _ints]),
    "blob_values": (c_int, [_handle, c_int, _out, _out]),
    "blob_free": (None, [_handle]),
    "memory_free": (None, [_handle]),
    "net_create": (c_int, [c_char_p, c_int, c_int, POINTER(c_char_p), c_int, _out]),
    "net_free": (None, [_handle]),
    "net_count": (c_int, [_handle, c_int, c_int]),
    "net_text": (c_char_p, [_handle, c_int, c_int, c_int]),
    "net_blob": (c_int, [_handle, c_char_p, _out]),
    "net_loss_weight": (c_double, [_handle, c_char_p]),
    "net_params": (c_int, [_handle, c_int]),
    "net_param": (c_int, [_handle, c_int, c_int, _out]),
    "net_instance": (c_int64, [_handle, c_int]),
    "net_forward": (c_int, [_handle, c_int, c_int, POINTER(c_double)]),
    "net_backward": (c_int, [_handle, c_int, c_int]),
    "net_reshape": (c_int, [_handle]),
    "net_clear_param_diffs": (c_int, [_handle]),
    "net_copy_from": (c_int, [_handle, c_char_p]),
    "net_share_with": (c_int, [_handle, _handle]),
    "net_save": (c_int, [_handle, c_char_p, c_int]),
    "net_set_input_arrays": (c_int, [_handle, c_void_p, c_void_p, c_int, _ints]),
    "net_set_hook": (c_int, [_handle, c_int, ON_LAYER, c_void_p]),
    "solver_create": (c_int, [c_char_p, c_char_p, _out]),
    "solver_free": (None, [_handle]),
    "solver_type": (c_char_p, [_handle]),
    "solver_test_nets": (c_int, [_handle]),
    "solver_net": (c_int, [_handle, c_int, _out]),
    "solver_step": (c_int, [_handle, c_int]),
    "solver_solve": (c_int, [_handle, c_char_p]),
    "solver_restore": (c_int, [_handle, c_char_p]),
    "solver_snapshot": (c_int, [_handle]),
    "solver_apply_update": (c_int, [_handle]),
    "solver_get": (c_int, [_handle, c_int, POINTER(c_double)]),
    "solver_set": (c_int, [_handle, c_int, c_double]),
    "solver_set_callbacks": (c_int, [_handle, ON_STEP, ON_STEP, c_void_p]),
    "set_layer_host": (c_int, [POINTER(LayerHost)]),
    "layer_text": (c_char_p, [_handle, c_int]),
    "layer_phase": (c_int, [_handle]),
    "layer_bottoms": (c_int, [_handle]),
    "layer_tops": (c_int, [_handle]),
    "layer_bottom": (c_int, [_handle, c_int, _out]),
    "layer_top": (c_int, [_handle, c_int, _out]),
    "layer_add_blob": (c_int, [_handle, c_int, _ints, _out]),
    "draw": (c_int, [c_void_p, c_char_p, POINTER(c_char_p), POINTER(c_size_t)]),
    "decode_image": (c_int, [c_char_p, c_size_t, c_int, _ints, _out, _out]),
}


def _function(name: str) -> Any:
    function = getattr(_library, "crema_" + name)
    function.restype, function.argtypes = _FUNCTIONS[name]
    return function


class _Functions:
    """An attribute such as lib.net_forward is the function crema_net_forward, resolved when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise AttributeError(name)
        function = _function(name)
        setattr(self, name, function)
        return function


lib = _Functions()
# `.failure` is the exception that a callback raised in this thread, until the engine's call has returned.
_thread = threading.local()


def check(status: int) -> None:
    """Raises for a failed status: a RuntimeError with the engine's message, or the exception that a callback raised."""
    if status == 0:
        return
    if status == _HOST:
        failure, _thread.failure = getattr(_thread, "failure", None), None
        # None: a signal's exception came before the callback's first line; ctypes has printed it.
        raise failure or KeyboardInterrupt
    raise RuntimeError(lib.last_error().decode("utf-8", "replace"))


def guarded(body: Callable[..., Any]) -> Callable[..., int]:
    """Wraps body as a callback. An exception in it, also KeyboardInterrupt, ends the engine's call and is raised
    again when that call has returned.
    """

    @functools.wraps(body)
    def call(*arguments: Any) -> int:
        try:
            body(*arguments)
            return 1
        except BaseException as e:  # noqa: B902 - a callback must not let anything through
            _thread.failure = e
            return 0

    return call


def guarded_steps(body: Callable[[], Any]) -> Callable[[Any], int]:
    """The same as guarded(), for callbacks that do not call themselves. The body is a generator: Python raises the
    exception of a pending signal where a function begins, and here that is inside the `try`.
    """

    def steps() -> Generator[int, Any, None]:
        answer = 1
        while True:
            try:
                yield answer
                answer = 0
                body()
                answer = 1
            except GeneratorExit:
                raise
            except BaseException as e:  # noqa: B902
                _thread.failure, answer = e, 0

    generator = steps()
    next(generator)
    return generator.send  # of `user`, which nobody reads


def made(function: Any, *arguments: Any) -> int:
    """Calls a function and returns the handle that it stores through its last argument."""
    handle = c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    return handle.value  # type: ignore[return-value]


def encoded(path: Any) -> bytes:
    return os.fspath(path).encode() if not isinstance(path, bytes) else path


def whole(value: Any, what: str, lowest: int = -(2**31), highest: int = 2**31 - 1) -> int:
    """A number for the engine, checked: ctypes would silently cut it to 32 bits, and int() drop a fraction."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {value!r}") from None
    if not lowest <= number <= highest:
        raise OverflowError(f"{what} must be {lowest} to {highest}, not {number}")
    return number


def dims_of(shape: Sequence[int]) -> Any:
    return (c_int * len(shape))(*(whole(d, "an axis of a blob") for d in shape))


class Owner:
    """Owns a handle and frees it in the end; there is only one owner, so no copy.copy, deepcopy or pickle."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it is part of the engine; copy the arrays, or "
            "save() and load"
        )


class Memory(Owner):
    """Memory of the engine. It is the base of the arrays made of it, so that it lives as long as they do."""

    __slots__ = ("_owner", "__array_interface__")

    def __init__(self, owner: int, address: int, shape: Tuple[int, ...], kind: str = "<f4") -> None:
        self._owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": kind, "version": 3}

    def __del__(self, free: Any = lib.memory_free) -> None:
        free(self._owner)


class Blob(Owner):
    """An N-d array of floats, `data`, and one of its gradients, `diff`: views of the engine's memory, not copies."""

    __slots__ = ("_handle", "__weakref__")

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __del__(self, free: Any = lib.blob_free) -> None:
        free(self._handle)

    @property
    def shape(self) -> Tuple[int, ...]:
        axes, dims = c_int(), (c_int * 32)()
        lib.blob_shape(self._handle, ctypes.byref(axes), dims)
        return tuple(dims[: axes.value])

    def _view(self, diff: int) -> np.ndarray:
        values, owner = c_void_p(), c_void_p()
        check(lib.blob_values(self._handle, diff, ctypes.byref(values), ctypes.byref(owner)))
        return np.asarray(Memory(owner.value, values.value, self.shape))  # type: ignore[arg-type]

    @property
    def data(self) -> np.ndarray:
        return self._view(0)

    @property
    def diff(self) -> np.ndarray:
        return self._view(1)

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def _legacy(self, axis: int) -> int:
        shape = self.shape
        if len(shape) > 4:
            raise RuntimeError(
                f"num, channels, height and width are names of at most 4 axes; this blob has {len(shape)}, use shape"
            )
        return shape[axis] if axis < len(shape) else 1

    num = property(lambda self: self._legacy(0))
    channels = property(lambda self: self._legacy(1))
    height = property(lambda self: self._legacy(2))
    width = property(lambda self: self._legacy(3))

    def reshape(self, *dims: int) -> None:
        """Sets new axes; values are kept where the count does not grow. Layers follow at the next forward or
        Net.reshape(). A parameter's count cannot change.
        """
        check(lib.blob_reshape(self._handle, len(dims), dims_of(dims)))


class BlobVec(List[Blob]):
    """A layer's parameters. In the setup of a layer written in Python, add_blob(*dims) adds one, filled with zeros."""

    _layer = None  # the engine's handle, during setup

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("the net keeps its own parameters; write into one with params[name][i].data[...] = values")

    def add_blob(self, *dims: int) -> None:
        if self._layer is None:
            raise RuntimeError("blobs.add_blob() works in setup() only: a net has all its parameters when it is built")
        self.append(Blob(made(lib.layer_add_blob, self._layer, len(dims), dims_of(dims))))
