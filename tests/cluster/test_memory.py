"""The memory that `crema plan` estimates for a worker, compared with the peak of the real process."""

import re
import subprocess
import sys

import pytest

from conftest import CREMA, crema, lenet, solver

DATA = (
    'layer { name: "data" type: "MemoryData" top: "data" top: "label" source_class: "com.yahoo.ml.caffe.LMDB"\n'
    '  memory_data_param { source: "%s" batch_size: %d channels: 1 height: 28 width: 28 } }\n'
)


def wide(records, hidden, batch):
    """A net whose memory is mostly weights, or mostly batches."""
    return (
        DATA % (records / "train_lmdb", batch)
        + f"""
layer {{ name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param {{ num_output: {hidden} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param {{ num_output: {hidden} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "ip3" type: "InnerProduct" bottom: "ip2" top: "ip3"
  inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss" }}
"""
    )


def peak_mib(folder, *arguments):
    code = (
        "import resource,subprocess,sys; r=subprocess.run(sys.argv[1:],capture_output=True,text=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.stderr.write(r.stderr); "
        "sys.exit(r.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, CREMA, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout) / 1024


@pytest.mark.parametrize("name,ranks", [("lenet", 1), ("lenet", 8), ("weights", 1), ("weights", 2), ("batches", 1)])
def test_the_estimate_covers_the_peak_and_is_no_fantasy(records, tmp_path, name, ranks):
    net = {
        "lenet": lambda: lenet(records, batch=64, test_batch=100),
        "weights": lambda: wide(records, 3000, 16),
        "batches": lambda: wide(records, 512, 8000),
    }[name]()
    if name == "batches":
        net = net.replace("batch_size: 8000", "batch_size: 1000").replace("num_output: 512", "num_output: 6000")
    solver(tmp_path, net, max_iter=4)
    planned = crema("plan", "-solver", "solver.prototxt", "-ranks", ranks, cwd=tmp_path)
    assert planned.code == 0, planned.err
    estimate = int(re.search(r"about (\d+) MiB per worker", planned.out).group(1))
    peak = peak_mib(tmp_path, "train", "-solver", "solver.prototxt", "-ranks", ranks, "-model", "m", "-threads", 2)
    print(f"{name}, {ranks} rank(s): estimate {estimate} MiB, peak {peak:.0f} MiB")
    assert (
        peak <= estimate <= 2 * peak + 80
    )  # of a small net the executable and its scratch are most, by vectors of half the width less


def test_rows_that_the_host_sends_are_in_the_estimate(records, tmp_path):
    solver(tmp_path, lenet(records))
    estimates = [
        int(
            re.search(
                r"about (\d+) MiB", crema("plan", "-solver", "solver.prototxt", "-rows", n, cwd=tmp_path).out
            ).group(1)
        )
        for n in (0, 1 << 27)
    ]
    assert estimates[1] - estimates[0] == 1024  # eight bytes each
