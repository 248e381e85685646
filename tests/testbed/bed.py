"""The test bed: which daemons there are, when each is ready, and what a client needs to use them."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

from . import settings
from .jvm import BRIEF
from .processes import MARK, DaemonFailed, Processes, free_ports
from .settings import HOST, NODES

PARTS = ("hadoop", "azure", "s3")
READY = 60  # seconds for a group of daemons to come up
OPENS = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.util")]


class Bed:
    """One folder: conf/, logs/, pids/, data/. `cache` holds what was fetched: jars-VERSION/{daemons,azure,s3} and
    azurite/.
    """

    def __init__(self, folder, cache, spark_home, hadoop="3.3.4", python=sys.executable, daemons_home=None):
        self.folder, self.cache = pathlib.Path(folder).absolute(), pathlib.Path(cache).absolute()
        self.spark_home, self.python = pathlib.Path(os.path.realpath(spark_home)), python
        # Jobs of a newer Spark run on the same cluster; the daemons keep the Hadoop jars of the Spark that they were
        # started with.
        self.daemons_home = pathlib.Path(os.path.realpath(daemons_home or spark_home))
        self.jars = {group: self.cache / f"jars-{hadoop}" / group for group in ("daemons", "azure", "s3")}
        self.processes = Processes(self.folder)
        java_home = os.environ.get("JAVA_HOME") or str(
            pathlib.Path(os.path.realpath(shutil.which("java") or "java")).parent.parent
        )
        self.java = pathlib.Path(java_home) / "bin/java"
        self.base_environment = {
            **os.environ,
            "JAVA_HOME": java_home,
            "SPARK_HOME": str(self.spark_home),
            "SPARK_LOCAL_IP": HOST,
            "HADOOP_USER_NAME": os.environ.get("USER", "root"),
        }
        self.ports = self._ports()

    def _ports(self):
        file = self.folder / "ports.json"
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(dict(zip(settings.PORTS, free_ports(len(settings.PORTS)))), indent=1))
        return json.loads(file.read_text())

    # --- up, down, status

    def up(self, *parts):
        """Starts the daemons that do not run. When that fails, those that this call started are stopped again."""
        before = [name for name, pid in self.status().items() if pid]
        settings.write(self.folder, self.ports, MARK, self.spark_home, self.jars)
        try:
            for part in parts or PARTS:
                getattr(self, f"_up_{part}")()
        except BaseException:
            if before:
                self.processes.stop_only(set(self.processes.names()) - set(before))
            else:
                self.down()
            raise

    def down(self):
        """Stops all daemons and whatever they started; removes their data, keeps logs and configuration."""
        gone = self.processes.stop()
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        (self.folder / "ports.json").unlink(missing_ok=True)
        return gone

    def status(self):
        return {name: self.processes.pid(name) for name in self.processes.names()}

    # --- the daemons

    def _up_hadoop(self):
        names = ("namenode", "datanode", "resourcemanager", *NODES)
        if all(self.processes.pid(n) for n in names):
            return
        self._need(self.jars["daemons"], "Hadoop's jars")
        if not (self.folder / "data/name/current").exists():
            self._run_once("format", "org.apache.hadoop.hdfs.server.namenode.NameNode", "-format", "-nonInteractive")
        self._java("namenode", "hdfs.server.namenode.NameNode")
        self._java("datanode", "hdfs.server.datanode.DataNode")
        self._java("resourcemanager", "yarn.server.resourcemanager.ResourceManager", memory="384m")
        for node in NODES:
            self._java(node, "yarn.server.nodemanager.NodeManager", settings.node_flags(self.folder, self.ports, node))
        self.processes.wait(names, self._hdfs_ready, READY, "a DataNode registered with the NameNode")
        self.processes.wait(names, self._yarn_ready, READY, "two active NodeManagers")

    def _up_azure(self):
        if self.processes.pid("azurite"):
            return
        self._need(self.cache / "azurite/node_modules/.bin/azurite-blob", "azurite")
        self._need(self.jars["azure"], "hadoop-azure")
        self._refuse_taken(settings.AZURE_PORT)
        data = self.folder / "data/azurite"
        data.mkdir(parents=True, exist_ok=True)
        self.processes.start(
            "azurite",
            [
                self.cache / "azurite/node_modules/.bin/azurite-blob",
                "--silent",
                "--location",
                data,
                "--blobHost",
                HOST,
                "--blobPort",
                settings.AZURE_PORT,
                "--skipApiVersionCheck",
                "--disableTelemetry",
            ],
            self.base_environment,
        )
        self.processes.wait(
            ["azurite"], lambda: answers(f"http://{HOST}:{settings.AZURE_PORT}/"), READY, "an answer of the blob server"
        )

    def _up_s3(self):
        if self.processes.pid("s3"):
            return
        self._need(self.jars["s3"], "hadoop-aws")
        url = f"http://{HOST}:{self.ports['s3']}"
        self.processes.start(
            "s3", [self.python, "-m", "moto.server", "-H", HOST, "-p", self.ports["s3"]], self.base_environment
        )
        self.processes.wait(["s3"], lambda: answers(url), READY, "an answer of the S3 server")
        with urllib.request.urlopen(urllib.request.Request(f"{url}/{settings.BUCKET}", method="PUT"), timeout=10):
            pass

    def _bean(self, port, name):
        """The attributes of a management bean, read by HTTP; empty while the daemon is starting."""
        answer = get_json(f"http://{HOST}:{self.ports[port]}/jmx?qry=Hadoop:service={name}") or {}
        return (answer.get("beans") or [{}])[0]

    def _hdfs_ready(self):
        bean = self._bean("namenode_http", "NameNode,name=FSNamesystemState")
        return bean.get("NumLiveDataNodes") == 1 and bean.get("FSState") == "Operational"

    def _yarn_ready(self):
        return self._bean("rm_http", "ResourceManager,name=ClusterMetrics").get("NumActiveNMs") == len(NODES)

    def _class_path(self):
        return f"{self.folder}/conf/hdfs:{self.jars['daemons']}/*:{self.jars['azure']}/*:{self.daemons_home}/jars/*"

    def _java_command(self, main, arguments=(), memory="256m"):
        return [
            self.java,
            f"-Xmx{memory}",
            *BRIEF.split(),
            f"-Dyarn.log.dir={self.processes.logs}",
            *OPENS,
            "-cp",
            self._class_path(),
            main,
            *arguments,
        ]

    def _java(self, name, main, arguments=(), memory="256m"):
        if not self.processes.pid(name):
            self.processes.start(
                name, self._java_command(f"org.apache.hadoop.{main}", arguments, memory), self.base_environment
            )

    def _run_once(self, name, main, *arguments, timeout=60):
        (self.folder / "logs").mkdir(exist_ok=True)
        with open(self.folder / f"logs/{name}.log", "w") as log:
            code = subprocess.run(
                [str(w) for w in self._java_command(main, arguments)],
                cwd=self.folder,
                env=self.environment("hdfs"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=timeout,
            ).returncode
        if code != 0:
            raise DaemonFailed(
                f"{name} ended with {code}; the end of {self.folder}/logs/{name}.log:\n{self.processes.log_end(name)}"
            )

    def _need(self, path, what):
        if not path.exists():
            raise DaemonFailed(f"{what}: {path} is not there; scripts/testbed fetch brings it")

    def _refuse_taken(self, port):
        with socket.socket() as s:
            taken = s.connect_ex((HOST, port)) == 0
        if taken:
            raise DaemonFailed(
                f"port {port} is taken and Azure's client of the emulator knows no other: end what listens there "
                f"(`ss -ltnp 'sport = :{port}'` names it), such as another test bed"
            )

    # --- for clients

    def environment(self, share):
        """The environment of a client whose default file system is `share`: hdfs, wasb, or s3a (HDFS, with s3a://
        configured too).
        """
        conf = str(self.folder / "conf" / share)
        return {**self.base_environment, "HADOOP_CONF_DIR": conf, "SPARK_CONF_DIR": conf, MARK: str(self.folder)}

    def url(self, share):
        return {
            "hdfs": settings.hdfs_url(self.ports),
            "wasb": f"wasb://{settings.CONTAINER}@{settings.ACCOUNT}",
            "s3a": f"s3a://{settings.BUCKET}",
        }[share]

    def fs(self, share, *arguments, timeout=120):
        """Runs Hadoop's own `hadoop fs` with these arguments; returns its output."""
        group = {"hdfs": "daemons", "wasb": "azure", "s3a": "s3"}[share]
        path = f"{self.folder}/conf/{share}:{self.jars[group]}/*:{self.daemons_home}/jars/*"
        done = subprocess.run(
            [
                str(self.java),
                *OPENS,
                *BRIEF.split(),
                "-cp",
                path,
                "org.apache.hadoop.fs.FsShell",
                *map(str, arguments),
            ],
            env=self.environment(share),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode != 0:
            raise DaemonFailed(
                f"hadoop fs {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stderr[-2000:]}"
            )
        return done.stdout

    def space_quota(self, folder, bytes):
        """The number of entries of a folder of HDFS; -1 when there is none. By HTTP, as Hadoop's own tool takes
        seconds to start.
        """
        query = f"op=SETQUOTA&storagespacequota={bytes}&user.name={self.base_environment['HADOOP_USER_NAME']}"
        url = f"http://{HOST}:{self.ports['namenode_http']}/webhdfs/v1{folder}?{query}"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=10).close()

    def container_logs(self, application):
        """The stderr files of all containers of a YARN application, by path."""
        return {
            p: p.read_text(errors="replace")
            for p in sorted((self.folder / "logs/containers").glob(f"*/{application}/*/stderr"))
        }


def answers(url):
    """Whether a server answers HTTP there, with any answer."""
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, urllib.error.URLError):
        return False
    return True


def get_json(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None
