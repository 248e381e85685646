"""up | down | status | guard: see scripts/testbed."""

import argparse
import os
import pathlib
import sys

from .bed import PARTS, Bed
from .processes import DaemonFailed

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    p = argparse.ArgumentParser(prog="scripts/testbed")
    p.add_argument("action", choices=("up", "down", "status", "guard"))
    p.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all by default")
    p.add_argument("--dir", default=ROOT / "build/testbed/run")
    p.add_argument("--cache", default=ROOT / "build/testbed")
    p.add_argument("--hadoop", default="3.3.4")
    p.add_argument("--spark-home", default=ROOT / ".venv/spark-home")
    o = p.parse_args()
    o.dir = pathlib.Path(os.environ.get("CREMA_STARTED_IN", "."), o.dir)
    wrong = set(o.parts) - set(PARTS)
    if wrong:
        p.error(f"there is no {', '.join(wrong)}; parts are {', '.join(PARTS)}")
    if o.action != "up" and not pathlib.Path(o.dir).exists():
        print(f"nothing was started in {o.dir}")
        return
    bed = Bed(o.dir, o.cache, o.spark_home, o.hadoop)
    try:
        act(bed, o)
    except DaemonFailed as e:
        sys.exit(f"error: {e}")
    except KeyboardInterrupt:
        sys.exit(130)


def act(bed, o):
    if (
        o.action == "guard"
    ):  # The fixtures hold the other end of stdin: when their process ends, however that is, daemons are stopped.
        sys.stdin.read()
        bed.down()
        return
    if o.action == "down":
        if not bed.down():
            sys.exit(f"error: still running after SIGKILL: {bed.processes.marked()}")
        print(f"down; the logs are in {bed.folder}/logs")
        return
    if o.action == "up":
        bed.up(*o.parts)
    for name, pid in bed.status().items():
        print(f"{name:16} {'pid ' + str(pid) if pid else 'gone'}")
    if o.action == "up":
        print(f"hdfs  {bed.url('hdfs')}\nwasb  {bed.url('wasb')}\ns3a   {bed.url('s3a')}")
        print(
            f"export HADOOP_CONF_DIR={bed.folder}/conf/hdfs SPARK_CONF_DIR={bed.folder}/conf/hdfs   # or conf/wasb, "
            "conf/s3a"
        )


main()
