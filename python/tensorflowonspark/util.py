"""What nodes need of the host that they run on: its address, GPUs, Hadoop's classes, files in search paths."""

import contextlib
import errno
import logging
import os
import random
import re
import socket
import subprocess

from . import gpu_info

logger = logging.getLogger(__name__)

_HADOOP_TIME = 60  # seconds that `hadoop classpath` has


def single_node_env(num_gpus=1, worker_index=-1, nodes=[]):  # noqa: B006  the signature is TensorFlowOnSpark's
    """Prepares this process for a TensorFlow that runs alone: CLASSPATH for Hadoop, CUDA_VISIBLE_DEVICES for GPUs.

    worker_index, nodes: this process is nodes[worker_index], as "host:port"; those on the same host get different
    GPUs. Without nodes the GPUs follow from worker_index, and -1 takes any that are free.
    """
    expand_hadoop_classpath()
    if num_gpus > 0 and gpu_info.is_gpu_available():
        place = place_on_host(nodes, worker_index) if worker_index >= 0 and nodes else worker_index
        use_gpus(gpu_info.get_gpus(num_gpus, place))
        logger.info("Using gpu(s): %s", os.environ["CUDA_VISIBLE_DEVICES"])
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        logger.info("Using CPU")


def _host(address):
    """'h' of 'h:1234' and of 'h'; '[::1]' of '[::1]:80'."""
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdigit() else address


def expand_hadoop_classpath(environ=os.environ):
    """Adds Hadoop's jars to CLASSPATH, once in a process and its children (or in another environment): libhdfs, through
    which TensorFlow reads HDFS, takes no wildcards. Does nothing without HADOOP_HOME (or HADOOP_PREFIX, as Hadoop 2
    called it).
    """
    home = environ.get("HADOOP_PREFIX") or environ.get("HADOOP_HOME")
    if not home or "TFOS_CLASSPATH_UPDATED" in environ:
        return
    command = [os.path.join(home, "bin", "hadoop"), "classpath", "--glob"]
    try:
        jars = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_HADOOP_TIME).stdout.strip()
    except (OSError, subprocess.SubprocessError) as e:
        logger.warning("CLASSPATH has no jars of Hadoop, so TensorFlow cannot open hdfs:// paths: %s", e)
        return
    environ["CLASSPATH"] = os.pathsep.join(filter(None, (environ.get("CLASSPATH"), jars)))
    environ["TFOS_CLASSPATH_UPDATED"] = "1"


def get_ip_address():
    """The IPv4 address of the interface that leads out of this host; of its name where none does; else 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:  # UDP: connect() sends nothing, it only picks a route
        try:
            s.connect(("8.8.8.8", 80))
            return s.getsockname()[0]
        except OSError as e:
            if e.errno != errno.ENETUNREACH:
                raise
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        address = socket.gethostbyname(socket.getfqdn())
        s.bind((address, 0))  # a name may stand for an address that no interface of this host has
        return address
    return "127.0.0.1"


def find_in_path(path, file):
    """The first `folder/file` that is a file, for the folders of a search path such as $PATH; False if there is
    none.
    """
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, file)
        if os.path.isfile(candidate):
            return candidate
    return False


def write_executor_id(num):
    """Notes the number of the node in file `executor_id` of the working folder."""
    with open("executor_id", "w") as f:
        f.write(str(num))


def read_executor_id():
    """The number that write_executor_id noted."""
    try:
        with open("executor_id") as f:
            return int(f.read())
    except FileNotFoundError:
        raise Exception(
            "No executor_id file found on this node, please ensure that:\n"
            "1. Spark num_executors matches TensorFlow cluster_size\n"
            "2. Spark tasks per executor is 1\n"
            "3. Spark dynamic allocation is disabled\n"
            "4. There are no other root-cause exceptions on other nodes\n"
        ) from None


def num_gpus_of(tf_args, default=1):
    """`num_gpus` of a program's arguments, whether these are a dict or a namespace; `default` where it is not among
    them.
    """
    wanted = (tf_args if isinstance(tf_args, dict) else getattr(tf_args, "__dict__", {})).get("num_gpus")
    return default if wanted is None else wanted


def place_on_host(addresses, index):
    """Which one addresses[index], "host:port", is of those with the same host."""
    peers = [i for i, address in enumerate(addresses) if _host(address) == _host(addresses[index])]
    return peers.index(index)


def use_gpus(gpus, environ=os.environ):
    """Lets this process and its children, or who has that environment, see these GPUs alone: a text of nvidia-smi's
    numbers with commas between.
    """
    # CUDA numbers GPUs by speed unless it is asked to number them as nvidia-smi does.
    environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    environ["CUDA_VISIBLE_DEVICES"] = gpus


def task_context():
    """pyspark's TaskContext; None outside a task."""
    try:
        from pyspark import TaskContext
    except ImportError:
        return None
    return TaskContext.get()


def is_connect(session):
    """Whether this is a session of Spark Connect, which has no SparkContext and no RDDs."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def context_of(sc):
    """The SparkContext of a session, or the context itself; a session of Spark Connect as it is."""
    return sc if is_connect(sc) else getattr(sc, "sparkContext", sc)


def default_fs(sc):
    """Hadoop's fs.defaultFS of a SparkContext or session, such as 'hdfs://host:8020', without a slash at its end."""
    sc = context_of(sc)
    if is_connect(sc):
        found = sc.conf.get("spark.hadoop.fs.defaultFS", None) or _fs_of_server(sc)
    else:
        found = sc._jsc.hadoopConfiguration().get("fs.defaultFS")
    return found[:-1] if found.startswith("file://") and len(found) > 7 and found.endswith("/") else found


def _fs_of_server(session):
    """Of a session of Spark Connect, which does not show Hadoop's settings: its error for a path names the whole."""
    path = f"crema-asks-for-its-file-system-{random.getrandbits(64):x}"
    try:
        session.read.text(f"/{path}").schema  # noqa: B018  asks the server
    except Exception as e:
        found = re.search(rf"([a-z][a-z0-9+.-]*:(?://[^/\s]*)?)/{path}", str(e))
        if found:
            return "file://" if found[1] == "file:" else found[1]
        raise Exception(
            f"Hadoop's default file system is not known here: {e}; set spark.hadoop.fs.defaultFS for this session"
        ) from e
    return "file://"


_ENCRYPTION_OF_SPARK = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)


def encrypts(sc):
    """Whether nodes seal what they say to each other: spark.crema.encrypt, or else whether Spark encrypts what its own
    processes say.
    """
    sc = context_of(sc)
    conf = sc.conf if is_connect(sc) else sc.getConf()
    ours = conf.get("spark.crema.encrypt", None)
    if ours is not None:
        return ours == "true"
    return any(conf.get(key, "false") == "true" for key in _ENCRYPTION_OF_SPARK)


def tf_version():
    """The version of TensorFlow that is installed, without importing it; None if there is none."""
    from importlib import metadata

    for name in ("tensorflow", "tensorflow-cpu"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return None
