"""TensorFlowOnSpark's own Python tests against a package; see tests/compat/run_tfos_tests."""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from .processes import MARK, DaemonFailed
from .standalone import Standalone

REPORTER = pathlib.Path(__file__).with_name("unit_report.py")
# Keras 3 has not the arguments of callbacks and layers' names that this file uses.
LEGACY_KERAS = {"test_pipeline.py"}


def copied(checkout, to):
    """The files of the checkout's tests in folder `to`: copied, with the one edit."""
    tests = checkout / "tests"
    names = sorted(p.name for p in tests.glob("test*.py"))
    if not (tests / "test_TFCluster.py").is_file():
        sys.exit(f"error: {checkout} is no work tree of TensorFlowOnSpark: it has no tests/test_TFCluster.py")
    to.mkdir(parents=True)
    for name in names:
        shutil.copy(tests / name, to)
    edited = to / "test_pipeline.py"
    text = edited.read_text()
    if text.count("Adam(lr=") != 1:
        sys.exit("error: tests/test_pipeline.py has not the word that is to be edited, Adam(lr=")
    edited.write_text(text.replace("Adam(lr=", "Adam(learning_rate="))
    return names


def run_file(name, tests, work, environment, limit):
    """The unittests of one file in a process of their own; {id: passed|failed|skipped|not ended}, seconds."""
    start, log, report = time.monotonic(), work / f"{name}.log", work / f"{name}.report"
    folder = work / "cwd" / name
    folder.mkdir(parents=True)
    with open(log, "w") as out:
        process = subprocess.Popen(
            [sys.executable, str(REPORTER), str(tests), name, str(report)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            out.write(f"\nkilled after {limit} s\n")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    found = {}
    for line in report.read_text().splitlines() if report.exists() else []:
        what, _, test = line.partition(" ")
        if what == "planned":
            found[test] = "not ended"
        elif found.get(test) != "failed":
            found[test] = what
    if code != 0 and "failed" not in found.values() and "not ended" not in found.values():
        found[f"{name}, its process"] = f"ended with {code}"
    return found, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(prog="tests/compat/run_tfos_tests")
    parser.add_argument("checkout", type=pathlib.Path)
    for name in ("package", "jar", "spark-home", "python-path"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="tfos-tests-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = True
    try:
        failed = run_all(options, work)
    except DaemonFailed as e:
        print(f"error: {e}", file=sys.stderr)
    finally:
        if options.keep or failed:
            print(f"logs are in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if failed else 0)


def run_all(options, work):
    """Whether anything failed."""
    names = copied(options.checkout, work / "tests")
    wanted = [n for n in names if not options.only or pathlib.Path(n).stem in options.only]
    path = os.pathsep.join(filter(None, (options.package, options.python_path)))
    cluster = Standalone(
        work / "cluster", options.spark_home, {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    ).up()
    rows = []
    try:
        for name in wanted:
            environment = {
                **cluster.environment,
                MARK: str(cluster.folder),
                "MASTER": cluster.url,
                "SPARK_WORKER_INSTANCES": "2",
                "SPARK_CLASSPATH": options.jar,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
            }
            if name in LEGACY_KERAS:
                environment["TF_USE_LEGACY_KERAS"] = "1"
                environment["PYSPARK_SUBMIT_ARGS"] = "--conf spark.executorEnv.TF_USE_LEGACY_KERAS=1 pyspark-shell"
            rows.append((name, *run_file(name, work / "tests", work, environment, options.limit)))
            show(rows[-1], work)
    finally:
        cluster.down()
    results = [what for _, found, _ in rows for what in found.values()]
    good, total = results.count("passed"), len(results)
    print(f"{'all':22} {good:3} passed {total - good:3} not  {sum(seconds for *_, seconds in rows):6.0f} s", flush=True)
    return good < total or not total


def show(row, work):
    name, found, seconds = row
    good = list(found.values()).count("passed")
    print(f"{name:22} {good:3} passed {len(found) - good:3} not  {seconds:6.0f} s", flush=True)
    for test, what in found.items():
        if what != "passed":
            print(f"    {what}: {test} ({work / name}.log)", flush=True)


if __name__ == "__main__":
    main()
