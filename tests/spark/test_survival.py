"""Executors and their children that are lost while a job trains: it goes on, to the model and the snapshots of the
undisturbed job.
"""

import base64
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess

from conftest import ROOT, children, sha256, wait_until
from spark_jobs import ENVIRONMENT, FILES, command, job  # noqa: F401 (job is a fixture)

FRAMES = ("lenet_dataframe_solver.prototxt", "lenet_dataframe_train_test.prototxt")
MASTER = "local-cluster[3,1,1024]"


def descendants(pid):
    mine = children(pid)
    return mine + [d for c in mine for d in descendants(c)]


def processes(run, word):
    """Those of the job whose command line has the word."""

    def has(pid):
        try:
            return word in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return False

    return [p for p in descendants(run.pid) if has(p)]


def executors(run):
    return processes(run, "CoarseGrainedExecutorBackend")


def workers(run):
    return [w for w in processes(run, "\0worker\0-job")]


def longer(job, file, iterations):
    text = (job / file).read_text()
    for field, value in (("max_iter", iterations), ("snapshot", 400), ("test_interval", 500), ("test_iter", 5)):
        text = re.sub(rf"^{field}: .*", f"{field}: {value}", text, flags=re.M)
    (job / file).write_text(text)


def files_of(folder):
    return {
        p.name: sha256(p) for p in sorted(folder.glob("*iter*")) if "solverstate" in p.name or "caffemodel" in p.name
    }


def trained(job, folder, *flags, disturb=None, files=FILES, master=MASTER, **more):
    """Runs the job, with four ranks, into the folder; returns the driver's log and what it wrote."""
    if "-resume" not in flags:
        shutil.rmtree(folder, ignore_errors=True)  # a snapshot names its model by its whole path
        folder.mkdir()
    with open(job / "driver.log", "w") as log:
        run = subprocess.Popen(
            command(
                job, master, "-train", "-clusterSize", 4, *flags, model=f"file:{folder}/model", files=files, **more
            ),
            cwd=job,
            env=ENVIRONMENT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        if disturb:
            disturb(run)
        code = run.wait(200)
    finally:
        run.kill()
    text = (job / "driver.log").read_text()
    assert code == 0, text[-4000:]
    return text, sha256(folder / "model"), files_of(folder)


def at(job, iteration):
    wait_until(
        lambda: any(
            int(n) >= iteration for n in re.findall(r"training  iteration (\d+)/", (job / "driver.log").read_text())
        ),
        120,
        f"iteration {iteration}",
    )


def test_killed_children_and_executors_change_nothing(job, tmp_path):
    longer(job, FILES[0], 1500)
    _, model, snapshots = trained(job, tmp_path / "run", master="local[2]")
    assert len(snapshots) == 8

    def disturb(run):
        at(job, 100)
        os.kill(workers(run)[0], signal.SIGKILL)
        wait_until(
            lambda: "training goes on with 3 worker(s) (new" in (job / "driver.log").read_text(), 60, "a new worker"
        )
        os.kill(executors(run)[0], signal.SIGKILL)

    text, disturbed, its_snapshots = trained(job, tmp_path / "run", disturb=disturb)
    assert (disturbed, its_snapshots) == (model, snapshots), text[-4000:]
    # The next process may be there before the end of the one before is seen.
    lost = re.findall(r"worker \d \(rank.*\) was (?:lost in step \d+: .*|started again); the run goes on", text)
    assert len(lost) >= 2, text[-4000:]
    pauses = [float(p) for p in re.findall(r"training goes on with .* after ([\d.]+) s", text)]
    assert pauses and min(pauses) < 5, text[-4000:]
    for file in (tmp_path / "run").glob("*_iter_1500.*"):
        file.unlink()
    text, again, its_snapshots = trained(job, tmp_path / "run", "-resume", "auto", master="local[2]")
    assert re.search(r"training goes on from the snapshot of iteration 1200, \S+_iter_1200.solverstate", text), text[
        -2000:
    ]
    assert (again, its_snapshots) == (model, snapshots), text[-2000:]


def write_pictures(path, count, seed):
    draw = random.Random(seed)
    with open(path, "w") as out:
        for i in range(count):
            label = draw.randrange(10)
            pixels = bytes(draw.randrange(90) + (150 if (k * 7 + k // 28) % 10 == label else 0) for k in range(784))
            data = base64.b64encode(pixels).decode()
            row = {
                "id": str(i),
                "label": label,
                "channels": 1,
                "height": 28,
                "width": 28,
                "encoded": False,
                "data": data,
            }
            out.write(json.dumps(row) + "\n")


def frames_job(job, tmp_path, train=800, test=100):
    """The example whose records are data frames, on ones of our own with so many rows."""
    for name in FRAMES:
        text = (ROOT / "examples" / name).read_text()
        for part, count in (("train", train), ("test", test)):
            write_pictures(tmp_path / f"{part}.json", count, len(part))
            text = re.sub(rf'source: "\S*{part}\S*"', f'source: "file:{tmp_path}/{part}.json"', text)
        text = text.replace("batch_size: 64", "batch_size: 8").replace("batch_size: 100", "batch_size: 20")
        text = re.sub(r'dataframe_format: ".*"', 'dataframe_format: "json"', text)
        (job / name).write_text(text)


def test_rows_of_a_lost_executor_come_again(job, tmp_path):
    """Rows that only the lost worker had: Spark's next attempt sends them anew, while the others wait."""
    frames_job(job, tmp_path)
    longer(job, FRAMES[0], 1200)
    _, model, _ = trained(job, tmp_path / "run", files=FRAMES, master="local[2]")

    def disturb(run):
        at(job, 50)
        os.kill(executors(run)[1], signal.SIGKILL)

    text, disturbed, _ = trained(job, tmp_path / "run", disturb=disturb, files=FRAMES)
    assert disturbed == model, text[-4000:]
    came = re.findall(r"training goes on with \d worker\(s\)(?: \(new: ([\d, ]+)\))?", text)
    lost = set(re.findall(r"worker (\d) \(rank.*?\) was (?:lost|started again)", text))
    assert len(lost) == 1 and came == [*lost], text[-4000:]  # only the one whose rows went with its executor is new
    assert "is already here" not in text
