"""Workers that die, stop or never come, and unauthenticated clients: every process ends in time with a message, or
nothing changes.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from conftest import CREMA, children, crema, lenet, running, sha256, solver, wait_until
from runs import begun, cluster, ended, endless, on_machines, start  # noqa: F401 (a fixture)


def refused(folder, flags, address, number, word):
    """A worker that ends with a message that has the word."""
    done = crema("worker", *flags, "-coordinator", address, "-worker", number, cwd=folder, timeout=20)
    assert done.code != 0 and word in done.message, done.err[-500:]


@pytest.mark.parametrize("sign,words", [(signal.SIGKILL, "was lost"), (signal.SIGSTOP, "has been silent for 3 s")])
def test_a_worker_that_dies_or_stops_ends_the_run_for_all_where_that_is_asked_for(endless, sign, words):
    flags = "-ranks 8 -workers 4 -threads 1 -step_timeout 3 -replacement fail".split()
    run = start(endless, "train", "-solver", "solver.prototxt", *flags)
    wait_until(lambda: begun(endless), 30, "the first step")
    workers = children(run.pid)
    assert len(workers) == 4
    os.kill(workers[2], sign)
    disturbed = time.monotonic()
    assert ended(run, 15) == 1
    assert time.monotonic() - disturbed < 3 + 2.5, "later than the deadline and two seconds, and a busy machine's half"
    message = (endless / "run.log").read_text().strip().splitlines()[-1]
    assert re.search(rf"worker 2 \(ranks 4 to 5, host \S+ 127\.0\.0\.1, pid {workers[2]}\) {words}", message), message
    remedy = "run it again with -resume auto, which goes on from the last snapshot if there is one"
    assert re.search(r"in step \d+", message) and remedy in message, message
    assert not [p for p in workers if running(p)]


@pytest.mark.parametrize("replacement", ["fail", "continue"])
def test_workers_that_are_stopped_for_ever_do_not_hold_up_the_end(endless, replacement):
    flags = f"-ranks 4 -workers 4 -threads 1 -step_timeout 3 -replacement {replacement}".split()
    run = start(endless, "train", "-solver", "solver.prototxt", *flags)
    wait_until(lambda: begun(endless), 30, "the first step")
    workers = children(run.pid)
    stopped = workers if replacement == "continue" else workers[1:]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    disturbed = time.monotonic()
    assert ended(run, 15) == 1
    assert time.monotonic() - disturbed < 3 + 2.5, "later than the deadline and two seconds, and a busy machine's half"
    assert "has been silent for " in (endless / "run.log").read_text().strip().splitlines()[-1]
    assert not [p for p in workers if running(p)]


def test_what_is_wrong_with_all_workers_is_said_once(records, tmp_path):
    solver(tmp_path, lenet(records).replace("train_lmdb", "nope_lmdb"), max_iter=5)
    done = crema(*"train -solver solver.prototxt -ranks 3 -workers 3 -threads 1".split(), cwd=tmp_path)
    assert done.code == 1 and done.err.count("there is no LMDB at") == 1, done.err[-3000:]
    assert re.search(
        r"\ncrema: error: worker \d \(.*\) failed in step 0: there is no LMDB at .*\n  in layer 'data'", done.err
    )


def test_where_all_workers_are_killed_nobody_is_said_to_go_on(endless):
    coordinator, address, flags = cluster(endless, 2, 10**6, timeout=20, replacement="continue")
    workers = on_machines(endless, [endless, endless], address, [*flags, "-threads", 1])
    wait_until(lambda: begun(endless, "w0"), 30, "the first step")
    for worker in workers:
        worker.kill()
    assert ended(coordinator, 30) == 1
    said = (endless / "coordinator.log").read_text()
    assert said.count("; the run goes on") == 1 and said.count("; no worker is left") == 1, said[-2000:]


def test_killing_the_parent_leaves_no_worker(endless):
    run = start(endless, "train", "-solver", "solver.prototxt", "-ranks", 3, "-workers", 3, "-threads", 1)
    wait_until(lambda: begun(endless), 30, "the first step")
    workers = children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    ended(run, 5)
    wait_until(lambda: not [p for p in workers if running(p)], 10, "the workers' end")


def test_a_worker_that_never_comes_is_named(endless):
    coordinator, address, flags = cluster(endless, 3, 10)
    workers = [start(endless, "worker", *flags, "-coordinator", address, "-worker", w, name=f"w{w}") for w in (0, 2)]
    for process, name in [(coordinator, "coordinator")] + [(p, f"w{w}") for p, w in zip(workers, (0, 2))]:
        assert ended(process, 15) == 1
        message = (endless / f"{name}.log").read_text().strip().splitlines()[-1]
        assert "3 workers wanted, 2 here" in message and "worker 1" in message, message


def test_a_worker_without_a_coordinator_ends(endless):
    (endless / "token").write_bytes(os.urandom(32))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{s.getsockname()[1]}"
    flags = "-solver solver.prototxt -token_file token -ranks 2 -workers 2 -join_timeout 2".split()
    refused(endless, flags, nobody, 1, nobody)


def test_unauthenticated_clients_and_garbage_change_nothing(endless):
    finished = []
    for disturbed in (False, True):
        coordinator, address, flags = cluster(endless, 2, 60)
        host, port = address.rsplit(":", 1)
        visitors = []
        if disturbed:
            for bytes_ in (b"", b"GET / HTTP/1.0\r\n\r\n", os.urandom(5000), b"\xff" * 64):
                s = socket.create_connection((host, int(port)), 5)
                s.sendall(bytes_)
                visitors.append(s)
            other = endless / "other"
            other.write_bytes(os.urandom(32))
            refused(endless, [other if f == "token" else f for f in flags], address, 0, "token")
        workers = [
            start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
            for w in (0, 1)
        ]
        for process in workers + [coordinator]:
            assert ended(process, 60) == 0, (endless / "coordinator.log").read_text()[-2000:]
        for s in visitors:
            s.close()
        finished.append([sha256(endless / f"snap_iter_60.{kind}") for kind in ("caffemodel", "solverstate")])
    assert finished[0] == finished[1]


def test_workers_of_different_jobs_are_refused(endless):
    coordinator, address, flags = cluster(endless, 2, 10)
    other = (endless / "solver.prototxt").read_text().replace("base_lr: 0.01", "base_lr: 0.02")
    (endless / "other.prototxt").write_text(other)
    first = start(endless, "worker", *flags, "-coordinator", address, "-worker", 0, name="w0")
    others = ["other.prototxt" if f == "solver.prototxt" else f for f in flags]
    refused(endless, others, address, 1, "different")
    assert ended(first, 15) == 1 and ended(coordinator, 15) == 1


def test_workers_with_other_records_or_weights_are_found_before_training(endless, records):
    """One machine has a stale copy of the database: at the same path, but with other records."""
    for w, part in ((0, "train"), (1, "test")):
        (endless / f"machine{w}").mkdir()
        (endless / f"machine{w}/db").symlink_to(records / f"{part}_lmdb")
    net = (endless / "net.prototxt").read_text().replace(str(records / "train_lmdb"), "db")
    (endless / "net.prototxt").write_text(net)
    coordinator, address, flags = cluster(endless, 2, 10)
    workers = on_machines(endless, [endless / "machine0", endless / "machine1"], address, flags)
    for process in [coordinator, *workers]:
        assert ended(process, 20) == 1
    message = (endless / "coordinator.log").read_text()
    assert (
        "worker 1 (rank 1," in message
        and "reads other records than worker 0" in message
        and "200 records" in message
        and "1003 records" in message
    ), message


def test_a_crowd_of_unauthenticated_clients_costs_nothing(endless):
    coordinator, address, flags = cluster(endless, 2, 20, timeout=30)
    host, port = address.rsplit(":", 1)
    silent = [
        socket.create_connection((host, int(port)), 5) for _ in range(80)
    ]  # more than may prove their token at the same time
    for _ in range(500):
        socket.create_connection((host, int(port)), 5).close()
    workers = [
        start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in (0, 1)
    ]
    for process in [*workers, coordinator]:
        assert ended(process, 60) == 0, (endless / "coordinator.log").read_text()[-1500:]
    for s in silent:
        s.close()


def ports(pid):
    """The TCP ports at which a process listens, as the kernel reports them."""
    sockets = {
        os.readlink(f"/proc/{pid}/fd/{fd}")[8:-1]
        for fd in os.listdir(f"/proc/{pid}/fd")
        if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    }
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(words[1].split(":")[1], 16) for words in lines if words[3] == "0A" and words[9] in sockets]


def test_knocking_at_every_port_before_the_first_step_changes_nothing(endless):
    finished = []
    for disturbed in (False, True):
        coordinator, address, flags = cluster(endless, 3, 20, timeout=20)
        workers = [
            start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
            for w in (0, 1)
        ]
        for process in workers:
            wait_until(lambda pid=process.pid: ports(pid), 10, "its port")
        doors = [port for process in [coordinator, *workers] for port in ports(process.pid)]
        assert len(doors) == 3
        crowd = range(100 if disturbed else 0)
        silent = [socket.create_connection(("127.0.0.1", port), 5) for port in doors for _ in crowd]
        before = time.monotonic()
        workers.append(
            start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", 2, name="w2")
        )
        for process in [*workers, coordinator]:
            assert ended(process, 60) == 0, (endless / "coordinator.log").read_text()[-1500:]
        if disturbed:
            assert (
                time.monotonic() - before < 15
            )  # if clients were served one after the other, two seconds each, this would take 200
            for name in ("coordinator", "w0", "w1"):
                reported = [line for line in (endless / f"{name}.log").read_text().splitlines() if " refused" in line]
                assert len(reported) <= 2 and reported[-1].endswith("were refused in all"), reported
        for s in silent:
            s.close()
        finished.append(sha256(endless / "snap_iter_20.caffemodel"))
    assert finished[0] == finished[1]


def test_waiting_costs_no_processor_time(records, tmp_path):
    """While one of two workers waits for the other, it uses no processor time."""
    solver(tmp_path, lenet(records))
    (tmp_path / "token").write_bytes(b"0123456789abcdef")
    common = "-solver solver.prototxt -token_file token -ranks 2 -workers 2 -join_timeout 30".split()
    coordinator = subprocess.Popen(
        [CREMA, "coordinator", *common], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    processes = [coordinator]
    try:
        address = coordinator.stdout.readline().split()[-1]
        worker = subprocess.Popen(
            [CREMA, "worker", *common, "-worker", "0", "-coordinator", address],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        processes.append(worker)
        time.sleep(2)  # so that starting up is over

        def used(pid):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = [used(p.pid) for p in processes]
        time.sleep(4)
        spent = [used(p.pid) - b for p, b in zip(processes, before)]
        assert all(s <= 0.05 * 4 for s in spent), spent
        assert [p.poll() for p in processes] == [None, None], "they wait no longer"
    finally:
        for p in processes:
            p.kill()
            p.wait()


def test_eight_workers_are_connected_within_two_seconds(records, tmp_path):
    """From the start of the command to the mesh of all eight, nets and data included. A busy machine may delay a run,
    and delays none of them for ever: the best of five counts.
    """
    solver(tmp_path, lenet(records), max_iter=1)
    took = []
    while len(took) < 5 and min(took, default=2) >= 2:
        log = tmp_path / f"run{len(took)}.log"
        begin = time.monotonic()
        run = start(tmp_path, *"train -solver solver.prototxt -ranks 8 -workers 8 -threads 1".split(), name=log.stem)
        wait_until(lambda log=log: "Solving LeNet" in log.read_text(), 60, "the training of eight workers")
        took.append(time.monotonic() - begin)
        assert ended(run, 60) == 0
        said = log.read_text()
        joined = sorted(re.findall(r"worker (\d) has joined", said))
        assert joined == list("01234567") and said.index("(8 of 8)") < said.index("Solving LeNet"), said[-2000:]
    assert min(took) < 2, took
