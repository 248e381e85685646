"""YARN's cluster mode, where main runs in the ApplicationMaster: what failed is the application's diagnostics, and is tried again only where that helps."""
import os
import re
import signal
import subprocess
import time

from conftest import make_lmdb, sha256, wait_until
from spark_jobs import FILES, command, job, submit  # noqa: F401 (job is a fixture)
from test_daemons import TWO, fetched_hash, marked_processes, point, stored, told  # noqa: F401 (stored is a fixture)

CLUSTER = (*TWO, "spark.submit.deployMode=cluster")


def rewrite(file, *changes):
    text = file.read_text()
    for pattern, new in changes:
        text, found = re.subn(pattern, new, text, flags=re.M)
        assert found, pattern
    file.write_text(text)


def application(bed, text):
    """What spark-submit shows of it: its diagnostics, as YARN's client was given them; and how many attempts have left containers."""
    name = re.search(r"application_\d+_\d+", text).group()
    diagnostics = re.search(r"Application diagnostics message: (.*?)\n(?=\d{4}-|Exception)", text, re.S)
    attempts = {re.search(r"container_\d+_\d+_(\d+)_", str(p)).group(1) for p in bed.container_logs(name)}
    return name, diagnostics.group(1) if diagnostics else "", len(attempts)


def refused(bed, done, *sentences):
    """The sentences are the diagnostics, which the submitting console shows, and nothing else is; there was one attempt. Its containers."""
    name, diagnostics, attempts = application(bed, done.stderr)
    assert done.returncode == 1, told(done, bed)
    for sentence in (*sentences, f"yarn logs -applicationId {name}", f"/cluster/app/{name}"):
        assert sentence in diagnostics, (sentence, told(done, bed))
    assert diagnostics.startswith("crema: error: ") and len(diagnostics.splitlines()) <= 7, diagnostics
    assert attempts == 1
    return bed.container_logs(name)


def test_a_wrong_solver_is_told_before_executors_are_asked_for(job, hadoop):
    rewrite(job / FILES[0], (r"solver_mode: CPU", "solver_mode: GPU"))
    start = time.monotonic()
    done = submit(job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=CLUSTER, model=f"{hadoop.url('hdfs')}/gpu.model")
    print(f"{time.monotonic() - start:.1f} s")
    assert len(refused(hadoop, done, "solver_mode", "GPU")) == 1  # the master's container


def test_too_little_data_is_told_by_one_attempt(job, hadoop, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    make_lmdb(few, "train", 1)
    rewrite(job / FILES[1], (r'source: "\S*/train_lmdb"', f'source: "file:{few}/train_lmdb"'), (r'source: "(/\S*/test_lmdb)"', r'source: "file:\1"'))
    done = submit(job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=CLUSTER, model=f"{hadoop.url('hdfs')}/few.model")
    refused(hadoop, done, "Insufficient training data", "every rank, clusterSize x devices, needs one")


def test_a_second_attempt_goes_on_from_the_first_ones_snapshot_to_the_same_model(job, hadoop, stored):
    point(job, stored(hadoop, "hdfs"))
    rewrite(job / FILES[0], (r"^max_iter: .*", "max_iter: 600"), (r"^snapshot: .*", "snapshot: 200"), (r"^test_interval: .*", "test_interval: 0"), (r"^test_iter: .*", "test_iter: 0"))
    undisturbed = submit(job, "local[2]", "-train", "-clusterSize", 2, env=hadoop.environment("hdfs"), model=f"file:{job}/undisturbed")
    assert undisturbed.returncode == 0, undisturbed.stderr[-3000:]
    out = f"{hadoop.url('hdfs')}/attempts"

    def masters():
        found = re.search(r"application_\d+_\d+", (job / "client.log").read_text())
        return "".join(hadoop.container_logs(found.group()).values()) if found else ""

    with open(job / "client.log", "w") as log:
        run = subprocess.Popen(command(job, "yarn", "-train", conf=CLUSTER, model=f"{out}/m.model"), cwd=job, env=hadoop.environment("hdfs"), stdout=log, stderr=log)
    try:
        wait_until(lambda: "iteration 200: snapshot" in masters() or run.poll() is not None, 120, "the first snapshot")
        os.kill(marked_processes(hadoop, "/crema worker")[0], signal.SIGKILL)
        run.wait(120)
    finally:
        run.kill()
        run.wait(20)
    text = (job / "client.log").read_text()
    _, _, attempts = application(hadoop, text)
    said = masters()
    assert run.returncode == 0 and attempts == 2, text[-1500:] + said[-4000:]
    assert re.search(r"crema: error: worker \d \(rank \d, host .*pid \d+\) was lost", said) and re.search(r"worker \d was in executor \d on host \S+, container container_\d+_\d+_01_\d+", said)
    assert re.search(r"the last snapshot is of iteration \d+: hdfs://\S+_iter_\d+\.solverstate", said)
    assert re.search(r"attempt 2 of this application: the one before has failed; training goes on from its snapshot of iteration (200|400), hdfs://", said), said[-4000:]
    assert fetched_hash(hadoop, "hdfs", f"{out}/m.model", job) == sha256(job / "undisturbed")
