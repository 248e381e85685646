"""The caffe module within its process: threads, fork, memory, log, exit."""

import os
import select
import signal
import subprocess
import threading
import time

import numpy as np

from pycaffe_module import caffe, net, python, write

from conftest import lenet, records  # noqa: F401 (fixture)

NET = """layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 5 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
  inner_product_param { num_output: 3 weight_filler { type: 'gaussian' std: 1 } } }"""
BIG = """layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 8 dim: 16 dim: 64 dim: 64 } } }
layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c'
  convolution_param { num_output: 64 kernel_size: 5 weight_filler { type: 'gaussian' std: 0.1 } } }"""


def test_nets_compute_in_threads_beside_python():
    nets, x = [net(BIG) for _ in range(3)], np.random.default_rng(1).normal(size=(8, 16, 64, 64)).astype(np.float32)
    for other in nets[1:]:
        other.share_with(nets[0])
    alone = nets[0].forward(x=x)["c"].copy()
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    counter = threading.Thread(target=count)
    counter.start()
    start = counted[0]
    results = [None] * 3
    threads = [
        threading.Thread(
            target=lambda i=i: results.__setitem__(i, [nets[i].forward(x=x)["c"].copy() for _ in range(5)])
        )
        for i in range(3)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    done.set()
    counter.join(5)
    assert counted[0] - start > 5, "Python stood still while nets computed"
    assert all((r == alone).all() for part in results for r in part)


def test_a_forked_child_is_told_what_it_cannot_do(tmp_path, records):
    made = net(BIG)
    made.forward()
    # With a thread that decodes ahead.
    reads = caffe.Net(write(tmp_path, "net.prototxt", lenet(records, batch=8)), caffe.TRAIN)
    reads.forward()
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made.forward()
            os.write(written, b"it computed")
        except RuntimeError as e:
            made = reads = None  # deleting them does not wait for a thread
            os.write(written, net(BIG).forward() and str(e).encode())
        finally:
            os._exit(0)
    os.close(written)
    heard, _, _ = select.select([read], [], [], 30)
    said = os.read(read, 1000).decode() if heard else "nothing in 30 s"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    assert "before the process fork()ed" in said and "spawn" in said


def test_nets_leave_no_memory_behind():
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * 4096

    for _ in range(5):
        net(BIG).forward()
    before = resident()
    for _ in range(40):
        net(BIG).forward()
    assert resident() - before < 30e6, "a net of BIG holds 11 MB"


def test_log_lines_go_to_stderr_from_the_wanted_level_on(tmp_path):
    write(tmp_path, "net.prototxt", NET)
    program = "import caffe; caffe.Net('net.prototxt', caffe.TEST); caffe.log('a line of mine')"
    loud = python(program, tmp_path, GLOG_minloglevel="0")
    assert (
        loud.returncode == 0
        and "Creating Layer ip" in loud.stderr
        and "a line of mine" in loud.stderr
        and not loud.stdout
    )
    for quiet in (
        python(program, tmp_path, GLOG_minloglevel="1"),
        python("import caffe; caffe.init_log(2); " + program, tmp_path, GLOG_minloglevel="0"),
    ):
        assert quiet.returncode == 0 and not quiet.stderr


def test_a_program_may_end_with_nets_in_any_place(tmp_path):
    write(tmp_path, "net.prototxt", NET)
    ended = python(
        "import caffe\nclass Holder: pass\nh = Holder(); h.h = h; h.net = caffe.Net('net.prototxt', 1)\n"
        "keep = h.net.blobs['x'].data; import sys; sys.keep = h.net",
        tmp_path,
    )
    assert ended.returncode == 0 and not ended.stderr


def test_a_locale_with_a_decimal_comma(tmp_path):
    """protobuf reads default values such as 0.99 with the process's locale; messages, nets and numbers are the same
    under any locale.
    """
    (tmp_path / "comma.src").write_text(
        'LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n'
    )
    subprocess.run(
        ["localedef", "-c", "-i", "comma.src", "-f", "ANSI_X3.4-1968", "--no-archive", "./comma"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    write(
        tmp_path,
        "net.prototxt",
        NET
        + " layer { name: 'p' type: 'Power' bottom: 'y' top: 'p' power_param { power: 1 scale: 0.5 shift: 1.5e-1 } }",
    )
    done = python(
        """import locale
locale.setlocale(locale.LC_ALL, "comma")
assert locale.localeconv()["decimal_point"] == ","
import caffe
assert locale.localeconv()["decimal_point"] == ","
assert abs(caffe.proto.caffe_pb2.SolverParameter().rms_decay - 0.99) < 1e-6
net = caffe.Net("net.prototxt", caffe.TEST)
net.params["ip"][0].data[...] = 0.25
net.blobs["x"].data[...] = 1
assert (abs(net.forward()["p"] - (5 * 0.25 * 0.5 + 0.15)) < 1e-6).all()
""",
        tmp_path,
        LOCPATH=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr[-1000:]
