"""The configuration files of a cluster on loopback: Hadoop's site files and Spark's, one folder per default file
system.
"""

import pathlib
from xml.sax.saxutils import escape

from .jvm import options

HOST = "127.0.0.1"
AZURE_PORT = 10000  # fixed in hadoop-azure's client for the emulator
ACCOUNT = "devstoreaccount1"  # the emulator's only account
CONTAINER, BUCKET = "crema", "crema"
NODES = ("nodemanager1", "nodemanager2")
PORTS = (
    "namenode",
    "namenode_http",
    "datanode",
    "datanode_http",
    "datanode_ipc",
    "scheduler",
    "tracker",
    "rm",
    "rm_admin",
    "rm_http",
    "s3",
    *(f"{node}_{use}" for node in NODES for use in ("rpc", "localizer", "http", "collector", "amrm")),
)

LOG = """status = error
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n%ex
"""


def hdfs_url(ports):
    return f"hdfs://{HOST}:{ports['namenode']}"


def core(folder, ports, default_fs):
    return {
        "fs.defaultFS": default_fs,
        "hadoop.tmp.dir": folder / "data/tmp",
        "hadoop.security.token.service.use_ip": "true",
        "fs.azure.storage.emulator.account.name": ACCOUNT,
        "fs.s3a.endpoint": f"http://{HOST}:{ports['s3']}",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": "testing",
        "fs.s3a.secret.key": "testing",
    }


def hdfs(folder, ports):
    return {
        "dfs.namenode.name.dir": f"file://{folder}/data/name",
        "dfs.datanode.data.dir": f"file://{folder}/data/blocks",
        "dfs.replication": "1",
        "dfs.namenode.rpc-address": f"{HOST}:{ports['namenode']}",
        "dfs.namenode.http-address": f"{HOST}:{ports['namenode_http']}",
        "dfs.datanode.address": f"{HOST}:{ports['datanode']}",
        "dfs.datanode.http.address": f"{HOST}:{ports['datanode_http']}",
        "dfs.datanode.ipc.address": f"{HOST}:{ports['datanode_ipc']}",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.safemode.extension": "0",
        "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
    }


def yarn(folder, ports, mark):
    """Two nodes offer 11 GiB and 12 cores together, enough for eight executors of 896 MiB and an application master
    of 1.4 GiB.
    """
    rm = "yarn.resourcemanager."
    return {
        rm + "hostname": HOST,
        rm + "address": f"{HOST}:{ports['rm']}",
        rm + "scheduler.address": f"{HOST}:{ports['scheduler']}",
        rm + "resource-tracker.address": f"{HOST}:{ports['tracker']}",
        rm + "admin.address": f"{HOST}:{ports['rm_admin']}",
        rm + "webapp.address": f"{HOST}:{ports['rm_http']}",
        rm + "nodemanagers.heartbeat-interval-ms": "200",
        rm + "scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.resource.memory-mb": "5632",
        "yarn.nodemanager.resource.cpu-vcores": "6",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,PATH,LANG,{mark}",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
    }


def node_flags(folder, ports, node):
    """The -D flags in which NodeManagers of one configuration differ."""
    at = {
        "address": "rpc",
        "localizer.address": "localizer",
        "webapp.address": "http",
        "collector-service.address": "collector",
        "amrmproxy.address": "amrm",
    }
    flags = {f"yarn.nodemanager.{key}": f"{HOST}:{ports[f'{node}_{use}']}" for key, use in at.items()}
    flags["yarn.nodemanager.local-dirs"], flags["yarn.nodemanager.log-dirs"] = (
        folder / "data" / node,
        folder / "logs/containers" / node,
    )
    return [f"-D{key}={value}" for key, value in flags.items()]


def write_site(path, values):
    rows = "".join(
        f"<property><name>{escape(k)}</name><value>{escape(str(v))}</value></property>\n" for k, v in values.items()
    )
    path.write_text(f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n')


def write(folder, ports, mark, spark_home, jars):
    """Writes conf/hdfs, conf/wasb and conf/s3a, each to be used as HADOOP_CONF_DIR and SPARK_CONF_DIR. `jars` maps a
    group of jars to its folder.
    """
    java = options(spark_home)
    shares = {
        "hdfs": (hdfs_url(ports), ()),
        "wasb": (f"wasb://{CONTAINER}@{ACCOUNT}", ("azure",)),
        "s3a": (hdfs_url(ports), ("s3",)),
    }
    for name, (default_fs, groups) in shares.items():
        conf = pathlib.Path(folder) / "conf" / name
        conf.mkdir(parents=True, exist_ok=True)
        write_site(conf / "core-site.xml", core(folder, ports, default_fs))
        write_site(conf / "hdfs-site.xml", hdfs(folder, ports))
        write_site(conf / "yarn-site.xml", yarn(folder, ports, mark))
        (conf / "spark-defaults.conf").write_text(
            f"spark.yarn.jars local:{spark_home}/jars/*\nspark.executor.memory 512m\nspark.driver.memory 512m\n"
            "spark.ui.enabled false\nspark.ui.showConsoleProgress false\n"
            # The archive of classes is for class paths that begin with the jars.
            f"spark.driver.extraClassPath {spark_home}/jars/*\nspark.executor.extraClassPath {spark_home}/jars/*\n"
            + "".join(
                f"spark.{who} {java}\n"
                for who in ("driver.defaultJavaOptions", "executor.defaultJavaOptions", "yarn.am.extraJavaOptions")
            )
        )
        more = ":".join(str(jars[g] / "*") for g in groups)
        dist = f"export SPARK_DIST_CLASSPATH='{more}'\n" if more else ""
        (conf / "spark-env.sh").write_text(f"{dist}export HADOOP_CONF_DIR='{conf}' SPARK_SUBMIT_OPTS='{java}'\n")
        (conf / "log4j2.properties").write_text(LOG)
