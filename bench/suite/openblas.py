"""Which of its kernels OpenBLAS should take: on processors that it does not know it falls back to those without AVX,
at a quarter of the speed.

    openblas.py LIBRARY     one line of JSON: the core that OPENBLAS_CORETYPE, or OpenBLAS, has chosen, and its sgemm
"""

import ctypes
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
from measure import milliseconds, say

# A core's name, and what a processor must have for it.
CORES = {"HASWELL": ("avx2", "fma"), "SKYLAKEX": ("avx512f", "avx512bw"), "COOPERLAKE": ("avx512f", "avx512_bf16")}


def fitting():
    """Cores that this processor can run; None is what OpenBLAS chooses by itself."""
    flags = set(re.search(r"^flags\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    return [None, *(core for core, wanted in CORES.items() if flags.issuperset(wanted))]


def settings(core, threads):
    return {"OPENBLAS_NUM_THREADS": str(threads), **({"OPENBLAS_CORETYPE": core} if core else {})}


@functools.cache
def fastest(library):
    """{core, gflops, chosen}: by one thread; `core` is what OPENBLAS_CORETYPE should name, or None."""
    found = []
    for core in fitting():
        clean = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        command = [sys.executable, __file__, library]
        done = subprocess.run(command, env={**clean, **settings(core, 1)}, capture_output=True, text=True)
        if done.returncode == 0:
            found.append({"core": core, **json.loads(done.stdout.splitlines()[-1])})
    return max(found, key=lambda one: one["gflops"])


def main():
    n, library = 1024, ctypes.CDLL(sys.argv[1])
    library.openblas_get_corename.restype = ctypes.c_char_p
    a, b = np.random.default_rng(1).standard_normal((2, n, n), "f4")
    out = np.zeros((n, n), "f4")
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, out)]

    def product():
        library.cblas_sgemm(
            101, 111, 111, n, n, n, ctypes.c_float(1), pointers[0], n, pointers[1], n, ctypes.c_float(0), pointers[2], n
        )

    product()
    if not np.abs(out - a @ b).max() < 1e-3:
        sys.exit("error: its products are wrong on this processor")
    say(gflops=2e-6 * n**3 / milliseconds(product), chosen=library.openblas_get_corename().decode())


if __name__ == "__main__":
    main()
