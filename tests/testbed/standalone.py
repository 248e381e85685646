"""A cluster of Spark's own manager on loopback: one master, workers as real processes, ports that were free."""

import os
import pathlib
import shutil

from . import jvm
from .bed import READY, get_json
from .processes import Processes, free_ports
from .settings import HOST


class Standalone:
    """One folder: logs/, pids/, work/. environment: what the daemons, and so the executors and their Python, get
    beside this process's own.
    """

    def __init__(self, folder, spark_home, environment=None):
        self.folder, self.spark_home = pathlib.Path(folder).absolute(), pathlib.Path(os.path.realpath(spark_home))
        self.processes = Processes(self.folder)
        self.port, self.page = free_ports(2)
        self.url = f"spark://{HOST}:{self.port}"
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(self.spark_home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "512m",
            **jvm.environment(self.spark_home),
            **(environment or {}),
        }

    def up(self, workers=2, cores=1, memory="2g"):
        """Returns when all workers are registered; raises DaemonFailed otherwise."""
        self.folder.mkdir(parents=True, exist_ok=True)
        names = ["master", *(f"worker{i}" for i in range(workers))]
        try:
            self._start("master", "master.Master", "--port", self.port, "--webui-port", self.page)
            for name in names[1:]:
                work = self.folder / "work" / name
                arguments = ("--webui-port", 0, "-c", cores, "-m", memory, "-d", work, self.url)
                self._start(name, "worker.Worker", *arguments)
            self.processes.wait(names, lambda: self.alive() == workers, READY, f"{workers} workers of Spark's master")
        except BaseException:
            self.down()
            raise
        return self

    def _start(self, name, main, *arguments):
        command = [self.spark_home / "bin/spark-class", f"org.apache.spark.deploy.{main}", "-h", HOST, *arguments]
        self.processes.start(name, command, self.environment)

    def alive(self):
        return (get_json(f"http://{HOST}:{self.page}/json/") or {}).get("aliveworkers")

    def down(self):
        """Stops the daemons and whatever they started; removes the executors' folders, keeps the daemons' logs."""
        gone = self.processes.stop()
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        return gone
