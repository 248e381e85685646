"""Jobs that end before their time: by a signal to the driver, a killed worker, a killed coordinator."""

import os
import pathlib
import re
import signal

from conftest import running, wait_until
from disturbed_jobs import descendants, processes, started
from spark_jobs import FILES, job, submit  # noqa: F401 (job is a fixture)


def test_an_interrupted_driver_says_where_to_go_on(job):
    solver = job / FILES[0]
    text = solver.read_text()
    # So few snapshots that none is being published when the signal comes: Hadoop would log that it was interrupted.
    for sign, snapshot in ((signal.SIGINT, 200), (signal.SIGTERM, 0)):
        limits = re.sub(r"max_iter: \d+", "max_iter: 1000000", re.sub(r"snapshot: \d+", f"snapshot: {snapshot}", text))
        solver.write_text(limits)
        with started(job, "local[1]", "-train") as run:
            mark = f"crema: iteration {snapshot}: snapshot" if snapshot else "crema: iteration 30: test"
            wait_until(lambda m=mark: m in (job / "driver.log").read_text(), 90, mark)
            os.killpg(run.pid, sign) if sign == signal.SIGINT else os.kill(run.pid, sign)  # as a terminal, as `kill`
            code = run.wait(60)
        said = (job / "driver.log").read_text()
        assert code == 128 + sign, said[-3000:]
        last = re.findall("^crema: error: .*", said, re.M)
        assert len(last) == 1 and "Exception" not in said and "was asked to end (Ctrl-C, SIGTERM" in last[0], said[
            -3000:
        ]
        if snapshot:
            state = re.search(r"the last snapshot is of iteration \d+: (?:file:)?(\S+)$", last[0])[1]
            assert pathlib.Path(state).exists() and pathlib.Path(state).with_suffix(".caffemodel").exists(), last[0]
        else:
            assert last[0].endswith("`snapshot: N` in the solver writes one every N iterations"), last[0]


def test_interrupted_scoring_leaves_no_output(job):
    """Ctrl-C while rows are written, by a record at a time so that it takes long: a folder that is left would be
    refused by the next run.
    """
    net = job / FILES[1]
    net.write_text(re.sub(r"batch_size: \d+", "batch_size: 1", net.read_text()))
    assert submit(job, "local[1]", "-train", model=f"file:{job}/model").returncode == 0
    flags = ("-features", "accuracy,loss", "-label", "label")
    with started(job, "local[1]", *flags, model=f"file:{job}/model") as run:
        wait_until(lambda: (job / "out").exists(), 90, "the output's folder")
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT, (job / "driver.log").read_text()[-3000:]
    assert not (job / "out").exists()


def killed_child(job, sign, kind="worker"):
    """Runs a job of two executors, which does not go on without a lost one, and whose first worker process, or whose
    coordinator, gets a signal; returns the driver's log.
    """
    solver = job / FILES[0]
    solver.write_text(
        re.sub(r"max_iter: \d+", "max_iter: 1000000", re.sub(r"snapshot: \d+", "snapshot: 0", solver.read_text()))
    )

    def named(run):
        return processes(run, f"{kind}\0-job")

    alone = ("spark.crema.replacement=fail",)
    with started(job, "local-cluster[2,1,1024]", "-train", "-clusterSize", 2, conf=alone) as run:
        wait_until(lambda: "iteration" in (job / "driver.log").read_text(), 90, "the first step")
        everything = descendants(run.pid)
        assert len(named(run)) == (2 if kind == "worker" else 1)
        os.kill(named(run)[0], sign)
        code = run.wait(60)
    text = (job / "driver.log").read_text()
    assert code == 1, text[-3000:]
    wait_until(lambda: not [p for p in everything if running(p)], 20, "the end of all processes")
    assert not (job / "model").exists()
    return text


def test_killing_an_executors_child_fails_the_run_with_its_last_lines(job):
    text = killed_child(job, signal.SIGKILL)
    assert re.search(r"crema: error: worker \d \(rank \d, host .*pid \d+\) was lost in step \d+", text), text[-3000:]
    assert "last lines of `crema worker`" in text, text[-3000:]


def test_a_killed_coordinator_is_named_last(job):
    text = killed_child(job, signal.SIGKILL, "coordinator")
    last = text[text.rindex("crema: error:") :]
    assert re.match(
        r"crema: error: `crema coordinator` \(pid \d+\), which leads the run beside the driver, was killed by signal "
        r"9 \(SIGKILL\)",
        last,
    ), text[-3000:]
    assert "the run was over before attempt" not in last and "the coordinator is gone" not in last, last


def test_an_executors_child_that_gets_sigterm_leaves_a_published_snapshot(job):
    text = killed_child(job, signal.SIGTERM)
    said = re.search(
        r"a worker was told to end \(SIGTERM\), so training has stopped at iteration (\d+) of 1000000; go on from "
        r"there with -snapshot (\S+)",
        text,
    )
    assert said, text[-3000:]
    state = pathlib.Path(said.group(2).removeprefix("file:"))
    assert (
        state.name.endswith(f"_iter_{said.group(1)}.solverstate")
        and (job / state).exists()
        and (job / state.with_suffix(".caffemodel")).exists()
    )
