"""Caffe networks in Python: caffe.Net, caffe.get_solver, layers and more, as in BVLC Caffe's module of this name."""

from . import io
from ._hosted import Layer
from ._process import (
    __version__,
    has_nccl,
    init_log,
    layer_type_list,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_random_seed,
    set_solver_count,
    set_solver_rank,
    set_threads,
    solver_count,
    solver_rank,
)
from .classifier import Classifier
from .detector import Detector
from .net_spec import NetSpec, layers, params, to_proto
from .proto.caffe_pb2 import TEST, TRAIN
from .pycaffe import Net
from .solver import (
    NCCL,
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    Solver,
    Timer,
    get_solver,
)

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Classifier",
    "Detector",
    "Layer",
    "NCCL",
    "Net",
    "NetSpec",
    "NesterovSolver",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "TEST",
    "TRAIN",
    "Timer",
    "__version__",
    "get_solver",
    "has_nccl",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "params",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "set_threads",
    "solver_count",
    "solver_rank",
    "to_proto",
]
