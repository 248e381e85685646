"""The article's command on a test bed: uploads records to the blob store, runs examples/article.sh, reads the rows
back by `hadoop fs -cat`. See scripts/article.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from .bed import Bed

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = "wasb:///projects/machine_learning/image_dataset"
SOLVER, NET = "lenet_memory_solver.prototxt", "lenet_memory_train_test.prototxt"


def lay_out(to, jar, files=()):
    """Lays out CAFFE_ON_SPARK in `to`, with its net reading from the blob store; `files` replace files of the same
    names in data/.
    """
    subprocess.run([str(ROOT / "scripts/dist"), str(to), str(jar)], check=True, timeout=60)
    for file in files:
        shutil.copy(file, pathlib.Path(to) / "data")
    net = pathlib.Path(to) / "data" / NET
    net.write_text(
        re.sub(r'source: "\S*/((?:mnist_)?(train|test)_lmdb)"', rf'source: "{DATA}/mnist_\2_lmdb"', net.read_text())
    )


def upload(bed, train, test):
    """Uploads the records under the article's names."""
    bed.fs("wasb", "-mkdir", "-p", DATA)
    for name, folder in (("train", train), ("test", test)):
        bed.fs("wasb", "-mkdir", f"{DATA}/mnist_{name}_lmdb")
        bed.fs("wasb", "-put", pathlib.Path(folder) / "data.mdb", f"{DATA}/mnist_{name}_lmdb")


def run(bed, caffe_on_spark, timeout):
    """Runs the command; returns (process, seconds)."""
    environment = bed.environment("wasb")
    environment |= {"CAFFE_ON_SPARK": str(caffe_on_spark), "PATH": f"{bed.spark_home}/bin:{environment['PATH']}"}
    start = time.monotonic()
    done = subprocess.run(
        ["bash", str(ROOT / "examples/article.sh")],
        cwd=caffe_on_spark,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return done, time.monotonic() - start


def read_rows(bed):
    return [json.loads(line) for line in bed.fs("wasb", "-cat", "wasb:///mnist_features_result/part-*").splitlines()]


def main():
    p = argparse.ArgumentParser(prog="scripts/article")
    p.add_argument("--dir", required=True)
    p.add_argument("--data", required=True, help="folder with train_lmdb and test_lmdb")
    p.add_argument("--jar", required=True)
    o = p.parse_args()
    home = pathlib.Path(o.dir).absolute()
    bed = Bed(home / "run", ROOT / "build/testbed", os.environ["SPARK_HOME"])
    try:
        bed.up("hadoop", "azure")
        lay_out(home / "caffe_on_spark", o.jar)
        upload(bed, f"{o.data}/train_lmdb", f"{o.data}/test_lmdb")
        done, seconds = run(bed, home / "caffe_on_spark", 3600)
        if done.returncode != 0:
            sys.exit(
                f"error: the job failed; containers' logs are in {home}/run/logs/containers\n{done.stderr[-3000:]}"
            )
        rows = read_rows(bed)
        print(
            f"{len(rows)} rows, accuracy {sum(r['accuracy'][0] for r in rows) / len(rows):.4f}, the line took "
            f"{seconds:.0f} s"
        )
    finally:
        bed.down()


if __name__ == "__main__":
    main()
