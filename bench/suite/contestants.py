"""Who takes part: for each a command of one run, and how its figures are read."""

import dataclasses
import functools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import measure
import nets
import numpy as np
import openblas

HERE = pathlib.Path(__file__).resolve().parent
WORK = nets.ROOT / "build/bench"
CAFFE = nets.ROOT / "build/caffe/build"
SWITCH = WORK / "mkl_switch.so"
KEPT = {  # glibc keeps what is freed, as PyTorch makes its tensors anew in each step
    "MALLOC_MMAP_THRESHOLD_": str(8 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
RATE = re.compile(r"Iteration \d+ \(([\d.e+-]+) iter/s")
FIRST_LOSS = re.compile(r"Test net output #\d+: (\S+) = ([\d.e+-]+)(?: \(\* ([\d.e+-]+) = )?")
LOSS = re.compile(r"Iteration \d+ \(.*\), loss = ([\d.e+-]+)")
PASS = re.compile(r"Iteration: \d+ forward time: ([\d.e+-]+) ms")


@dataclasses.dataclass
class Case:
    """One line of the table."""

    net: str
    part: str  # train or score, or learn: the losses of a few steps
    batch: int
    threads: int
    folder: pathlib.Path
    step_ms: float = 100  # about what a step takes, for programs that are given a number of steps

    def steps(self, seconds):
        return max(2, math.ceil(1e3 * seconds / self.step_ms))

    def __str__(self):
        return f"{self.net} {self.part} b{self.batch}, {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclasses.dataclass
class Figures:
    ms: float
    peak_mib: float
    loss: float | None = None  # of the first batch in phase TEST
    apart: float | None = None  # largest distance of a probability from ours
    losses: list | None = None  # of the first steps, in phase TRAIN


class Failed(Exception):
    """Says which command, and its last words."""


def run(command, environment=None, seconds=900, folder=WORK):
    """stdout, stderr and the process's largest resident memory in MiB, asked for while it runs."""
    clean = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "LD_PRELOAD")}
    peak, end = 0, time.monotonic() + seconds
    with subprocess.Popen(
        [str(c) for c in command],
        stdout=open(WORK / "run.out", "w"),
        stderr=open(WORK / "run.err", "w"),
        env={**clean, **(environment or {})},
        cwd=folder,
    ) as child:
        while child.poll() is None:
            peak = max(peak, resident_mib(child.pid))
            if time.monotonic() > end:
                child.kill()
                raise Failed(f"{command[0]} took longer than {seconds} s")
            time.sleep(0.02)
    out, err = ((WORK / f"run.{kind}").read_text() for kind in ("out", "err"))
    if child.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {child.returncode}:\n{(out + err)[-1500:]}")
    return out, err, peak


def resident_mib(pid):
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) / 1024 if found else 0


def first_loss(log):
    """The sum of the losses by their weights, as both Caffes print them in test iteration 0."""
    return sum(float(value) * float(weight or 1) for _, value, weight in FIRST_LOSS.findall(log))


def caffe_log(program, case, solver, arguments, environment):
    """What a Caffe says while it trains from the weights, and its memory."""
    command = [program, "train", "-solver", solver, "-weights", case.folder / "weights.caffemodel", *arguments]
    _, log, peak = run(command, {"GLOG_logtostderr": "1", **environment}, folder=case.folder)
    return log, peak


def caffe_steps(program, case, *options):
    """Rounds of about a second between displays; the first is not counted."""
    display = case.steps(1.0)
    log, peak = caffe_log(program, case, nets.write_solver(case.folder, display, 6 * display + 1), *options)
    rates = [float(rate) for rate in RATE.findall(log)][1:]
    if len(rates) < 2:
        raise Failed(f"no rates in the log of {program}:\n{log[-1500:]}")
    return Figures(1e3 / statistics.median(rates[-5:]), peak, loss=first_loss(log))


def caffe_losses(program, case, *options):
    solver = nets.write_solver(case.folder, 1, nets.LEARNT_STEPS, "learn", nets.LEARNING_RATE)
    log, peak = caffe_log(program, case, solver, *options)
    return Figures(0, peak, losses=[float(loss) for loss in LOSS.findall(log)][: nets.LEARNT_STEPS])


CAFFE_PARTS = {"train": caffe_steps, "learn": caffe_losses}


def crema(case):
    if case.part in CAFFE_PARTS:
        return CAFFE_PARTS[case.part](nets.CREMA, case, ["-threads", case.threads], {})
    model, weights = case.folder / f"deploy_{case.batch}.prototxt", case.folder / "weights.caffemodel"
    command = [nets.CREMA, "time", "-model", model, "-weights", weights, "-phase", "TEST", "-forward_only", "-json"]
    said, log, _ = run([*command, "-threads", case.threads, "-iterations", 2 + case.steps(5.5)])
    said, passes = json.loads(said), [float(ms) for ms in PASS.findall(log)]
    ours = np.load(case.folder / "probabilities.npy")[: case.batch].astype("f8")
    said_of = {out["name"]: out for out in said["outputs"]}["prob"]
    # Not each probability, as of peers, but the first ones, and the root of the mean of all squares.
    first = np.array(said_of["first"])
    apart = max(
        abs(said_of["root_mean_square"] - math.sqrt((ours**2).mean())), np.abs(first - ours.flat[: first.size]).max()
    )
    # In the end `time` measures the machine, with 192 MiB: memory_bytes is of before that.
    return Figures(measure.of_rounds(passes), said["memory_bytes"] / (1 << 20), apart=apart)


def build_caffe():
    if subprocess.run([nets.ROOT / "bench/build_caffe"]).returncode:
        raise Failed(
            "BVLC Caffe could not be built (above); CAFFE_SOURCE names another repository, --peer leaves it out"
        )


@functools.cache
def caffes_blas():
    """Which of OpenBLAS's kernels Caffe gets: the fastest on this processor."""
    linked = subprocess.run(["ldd", CAFFE / "tools/caffe"], capture_output=True, text=True).stdout
    return openblas.fastest(re.search(r"libopenblas\S* => (\S+)", linked)[1])


def bvlc(case):
    threads = openblas.settings(caffes_blas()["core"], case.threads)
    if case.part in CAFFE_PARTS:
        return CAFFE_PARTS[case.part](CAFFE / "tools/caffe", case, [], threads)
    return answered([CAFFE / "caffe_score", case.folder, case.batch], threads)


def answered(command, environment):
    out, _, _ = run(command, environment)
    said = json.loads(out.splitlines()[-1])
    return Figures(said["ms"], said["peak_mib"], said.get("loss"), said.get("apart"), said.get("losses"))


def python(script, *arguments, environment=None):
    return answered([sys.executable, HERE / script, *arguments], environment)


def torch(case):
    return python("torch_peer.py", case.folder, case.part, case.batch, case.threads)


def torch_tuned(case):
    """channels_last, memory kept, MKL's AVX-512 code on processors that are not Intel's."""
    arguments = (case.folder, case.part, case.batch, case.threads, "tuned")
    return python("torch_peer.py", *arguments, environment={**KEPT, "LD_PRELOAD": str(SWITCH)})


def onnx(program):
    return lambda case: python("onnx_peer.py", case.folder, program, case.batch, case.threads)


PEERS = {
    "train": {"caffe": bvlc, "torch": torch, "torch tuned": torch_tuned},
    "score": {
        "caffe": bvlc,
        "torch tuned": torch_tuned,
        "onnxruntime": onnx("onnxruntime"),
        "openvino": onnx("openvino"),
    },
}


def sgemm_gflops(threads):
    """2048 x 2048 x 2048 by MKL: the arithmetic that another program gets out of this machine."""
    out, _, _ = run(
        [sys.executable, HERE / "torch_peer.py", ".", "gemm", 0, threads], {**KEPT, "LD_PRELOAD": str(SWITCH)}
    )
    return json.loads(out.splitlines()[-1])["gflops"]


def make_switch():
    """MKL asks this function whether the processor is Intel's, and otherwise leaves half of it unused."""
    WORK.mkdir(parents=True, exist_ok=True)
    source = WORK / "mkl_switch.c"
    source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", source, "-o", SWITCH], check=True)
