"""What runs in Spark's tasks: the start of a node, and feeding."""

import json
import logging
import os
import shutil
import socket
import sys
import time
import traceback

from tensorflowonspark import TFManager, TFNode, _feed, _node, _program, gpu_info, reservation, util

logger = logging.getLogger(__name__)


class TFNodeContext:
    """What a map function learns about its node: its second argument.

    Attributes: executor_id and worker_num (its number, 0 to the nodes - 1), job_name and task_index, cluster_spec ({job:
    ["host:port", ...]}), num_workers (nodes that train), defaultFS, working_dir, mgr (TFManager), tmp_socket (a socket
    that is bound to the node's port, with release_port=False).
    """

    def __init__(
        self,
        executor_id=0,
        job_name="",
        task_index=0,
        cluster_spec={},  # noqa: B006  as the original's signature; it is not changed
        defaultFS="file://",
        working_dir=".",
        mgr=None,
        tmp_socket=None,
    ):
        self.worker_num = executor_id
        self.executor_id = executor_id
        self.job_name = job_name
        self.task_index = task_index
        self.cluster_spec = cluster_spec
        self.num_workers = sum(len(v) for k, v in cluster_spec.items() if k in ("master", "chief", "worker"))
        self.defaultFS = defaultFS
        self.working_dir = working_dir
        self.mgr = mgr
        self.tmp_socket = tmp_socket

    def absolute_path(self, path):
        """TFNode.hdfs_path()"""
        return TFNode.hdfs_path(self, path)

    def start_cluster_server(self, num_gpus=1, rdma=False):
        """TFNode.start_cluster_server()"""
        return TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(self, sess, export_dir, tag_set, signatures):
        """TFNode.export_saved_model()"""
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(self, train_mode=True, qname_in="input", qname_out="output", input_mapping=None):
        """TFNode.DataFeed of this node"""
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def release_port(self):
        """TFNode.release_port()"""
        return TFNode.release_port(self)


class TFSparkNode:
    """State of this Python worker.

    Attributes: mgr (TFManager of the last node that it started), cluster_id.
    """

    mgr = None
    cluster_id = None


def _has_spark_resource_api():
    """Whether Spark can give GPUs to tasks (3.0 and later)."""
    from pyspark import TaskContext

    return hasattr(TaskContext, "resources")


def _get_cluster_spec(sorted_cluster_info):
    """{job: ["host:port", ...]} of what nodes say about themselves, by executor_id. Exception for an id that comes twice."""
    spec, last = {}, None
    for node in sorted_cluster_info:
        if node["executor_id"] == last:
            raise Exception(f"Duplicate worker/task in cluster_info: executor_id {last} is here twice")
        last = node["executor_id"]
        spec.setdefault(node["job_name"], []).append(f"{node['host']}:{node['port']}")
    return spec


def _role(cluster_template, executor_id):
    for job, ids in cluster_template.items():
        if executor_id in ids:
            return job, list(ids).index(executor_id)
    return "default", -1


def _asked_gpus(tf_args):
    """args.num_gpus; None when it is not given."""
    if isinstance(tf_args, dict):
        return tf_args.get("num_gpus")
    return getattr(tf_args, "num_gpus", None)


class _Gpus:
    """The GPUs of a node: what Spark gave to its task, else free ones of the machine."""

    def __init__(self, tf_args):
        self.asked = _asked_gpus(tf_args)
        self.wanted = 1 if self.asked is None else self.asked
        self.given = self._of_spark()
        self.own_choice = not self.given and "SPARK_EXECUTOR_POD_IP" not in os.environ and gpu_info.is_gpu_available()
        if self.asked and not self.given and not self.own_choice:
            raise Exception(
                f"Unable to find {self.asked} free GPU(s): Spark gives this task none and nvidia-smi finds none; set "
                "spark.task.resource.gpu.amount, or num_gpus=0"
            )

    def _of_spark(self):
        if not _has_spark_resource_api():
            return []
        from pyspark import TaskContext

        context = TaskContext.get()
        resources = context.resources() if context is not None else {}
        if "gpu" not in resources:
            return []
        addresses = list(resources["gpu"].addresses)
        if self.asked is not None and len(addresses) < self.asked:
            raise Exception(f"Unable to allocate {self.asked} GPU(s) from available GPUs: {addresses}")
        return addresses if self.asked is None else addresses[: self.asked]

    def choose(self, job_name, index):
        """Sets CUDA_VISIBLE_DEVICES. index: of this node among those of its machine."""
        chosen = self.given
        if not chosen and self.own_choice and job_name != "ps" and self.wanted:
            chosen = gpu_info.get_gpus(self.wanted, index, format=gpu_info.AS_LIST)
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(chosen)


def _here():
    """What tells this executor from others: host, and the JVM with its start."""
    pid = _node.executor_pid() or os.getppid()
    try:
        with open(f"/proc/{pid}/stat") as f:
            started = f.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "?"
    return f"{socket.gethostname()}/{pid}.{started}"


def _add_hadoop_classpath():
    """Hadoop's jars in CLASSPATH, for TensorFlow's own hdfs:// on libhdfs; once per process, if Hadoop is here."""
    home = os.environ.get("HADOOP_PREFIX") or os.environ.get("HADOOP_HOME") or os.environ.get("HADOOP_COMMON_HOME")
    if not home or "TFOS_CLASSPATH_UPDATED" in os.environ:
        return
    paths = util.hadoop_classpath(home)
    if paths:
        os.environ["CLASSPATH"] = os.pathsep.join(filter(None, [os.environ.get("CLASSPATH"), paths]))
        os.environ["TFOS_CLASSPATH_UPDATED"] = "1"


def _tensorboard(job_name, task_index, template, log_dir, executor_id):
    """(port, how to start it) for the node that shows the run; else None."""
    first = "worker" if template.get("worker") else "chief" if template.get("chief") else "master"
    if job_name != first or task_index != 0:
        return None
    port = int(os.environ.get("TENSORBOARD_PORT", 0))
    if not port:
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
    folders = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path, os.environ.get("PATH")]))
    script = shutil.which("tensorboard", path=os.pathsep.join([os.path.dirname(sys.executable), folders]))
    script = script or util.find_in_path(folders, "tensorboard/main.py")
    if not script:
        raise Exception(f"Unable to find 'tensorboard' in: {folders}; install it on the workers, or tensorboard=False")
    return port, [
        sys.executable,
        script,
        f"--logdir={log_dir or f'tensorboard_{executor_id}'}",
        f"--port={port}",
        "--bind_all",
        "--reload_multifile=True",
    ]


def _only(iterator):
    executor_id = None
    for executor_id in iterator:
        pass
    return executor_id


def run(fn, tf_args, cluster_meta, tensorboard, log_dir, queues, background):
    """The function of a task that starts a node.

    Args:
      fn: map_fun(args, ctx).
      cluster_meta: of TFCluster.run().
      tensorboard, log_dir: whether and on what to start TensorBoard, on one of the nodes.
      queues: names.
      background: the program runs in a process of its own, and the task ends when all nodes are there; else it runs in
        the task.

    Returns: a function of a partition with one number, the node's.
    """
    stays = [j for j in ("ps", "evaluator") if cluster_meta["cluster_template"].get(j)]
    payload = _program.pickled(fn, tf_args) if background or stays else None
    if background:
        fn = None

    def _mapfn(iterator):
        executor_id = _only(iterator)
        start = time.monotonic()
        template = cluster_meta["cluster_template"]
        job_name, task_index = _role(template, executor_id)
        gpus = _Gpus(tf_args)
        util.write_executor_id(executor_id)
        _add_hadoop_classpath()
        own_process = background or job_name in stays
        node = _Start(cluster_meta, executor_id, job_name, task_index, queues, start)
        board = _tensorboard(job_name, task_index, template, log_dir, executor_id) if tensorboard else None
        info = node.join(board[0] if board else 0)
        spec = _get_cluster_spec(sorted(info, key=lambda n: n["executor_id"]))
        node.export(spec)
        peers = [a for addresses in spec.values() for a in addresses]
        mine = spec[job_name][task_index] if job_name in spec and task_index < len(spec[job_name]) else peers[0]
        local = [a for a in peers if a.rpartition(":")[0] == mine.rpartition(":")[0]]
        gpus.choose(job_name, local.index(mine))
        ctx = TFNodeContext(
            executor_id, job_name, task_index, spec, cluster_meta["default_fs"], cluster_meta["working_dir"]
        )
        if board:
            node.beside(board[1])
        if own_process:
            node.compute(payload, ctx, stays=job_name in stays, keeps_port=not cluster_meta.get("release_port", True))
        else:
            node.here(fn, tf_args, ctx, keeps_port=not cluster_meta.get("release_port", True))

    return _mapfn


class _Start:
    """A node, from its process to its program."""

    def __init__(self, cluster_meta, executor_id, job_name, task_index, queues, start):
        self.meta, self.executor_id, self.job_name, self.task_index = cluster_meta, executor_id, job_name, task_index
        self.host = util.get_ip_address()
        self.token = cluster_meta.get("token") or reservation._tokens[tuple(cluster_meta["server_addr"])]
        fixed = os.environ.get("TENSORFLOW_PORT")
        self.fixed_port = int(fixed) if fixed else None
        host, port = cluster_meta["server_addr"]
        job = {
            "coordinator": f"{socket.gethostbyname(host)}:{port}",
            "host": self.host,
            "token": self.token,
            "attempt": _attempt(),
            "join_timeout": cluster_meta.get("reservation_timeout", 600),
            "step_timeout": 60,
            "task_seconds": time.monotonic() - start,
            "node": {
                "queue": sorted({*queues, "error", *(("control",) if job_name in ("ps", "evaluator") else ())}),
                "port": -1 if self.fixed_port else 0,
                "executor": _node.executor_pid(),
                "work_folder": os.path.abspath(cluster_meta.get("work_folder") or os.getcwd()),
            },
        }
        self.process = _node.NodeProcess(job)
        self.address, self.port, self.feed = self.process.ready(time.monotonic() + 60)

    def join(self, board_port):
        """Says what is to be said about this node, and returns the same of all."""
        mine = {
            "executor_id": self.executor_id,
            "host": self.host,
            "job_name": self.job_name,
            "task_index": self.task_index,
            "port": self.fixed_port or self.port,
            "tb_pid": 0,
            "tb_port": board_port,
            "addr": self.address,
            "feed": self.feed,
            "executor": _here(),
        }
        self.process.say(join={"about": reservation.about(mine)})
        return [json.loads(a["meta"]) for a in self.process.started()]

    def export(self, spec):
        """TF_CONFIG, when the cluster has a chief."""
        if "master" in spec or "chief" in spec:
            task = {"type": self.job_name, "index": self.task_index}
            os.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": task, "environment": "cloud"})
        else:
            os.environ.pop("TF_CONFIG", None)

    def beside(self, argument):
        compute = {"argument": argument, "environment": _program.environment(), "folder": os.getcwd(), "beside": True}
        self.process.say(compute=compute)

    def compute(self, payload, ctx, stays, keeps_port):
        """Starts the program in a process of its own; waits for the end of one that stays, as its slot is not for feeding."""
        self.process.say(
            compute={
                "argument": _program.COMMAND,
                "environment": _program.environment(),
                "folder": os.getcwd(),
                "payload": _program.payload(payload, ctx, self.address, self.token, keeps_port),
                "stays": stays,
            }
        )
        self.process.computing()
        if stays:
            self.process.over()
        else:
            TFSparkNode.mgr, TFSparkNode.cluster_id = TFManager.TFManager(self.address, self.token), self.meta["id"]
            self.process.leave()

    def here(self, fn, tf_args, ctx, keeps_port):
        """Runs the program in this task."""
        self.process.say(here={})
        ctx.mgr = TFSparkNode.mgr = TFManager.TFManager(self.address, self.token)
        TFSparkNode.cluster_id = self.meta["id"]
        if keeps_port:
            ctx.tmp_socket = _program.held_port(ctx.mgr)
        if isinstance(tf_args, list):
            sys.argv = tf_args
        try:
            fn(tf_args, ctx)
        except BaseException:
            self.process.say(ended={"failed": f"Exception in {ctx.job_name}:\n{traceback.format_exc()}"})
            raise
        self.process.say(ended={})


def _attempt():
    try:
        from pyspark import TaskContext

        return int(TaskContext.get().attemptNumber())
    except Exception:  # not in a task
        return 0


def train(cluster_info, cluster_meta, feed_timeout=600, qname="input"):
    """The function of a task that feeds a partition. It ends when the node has taken the rows; TFCluster.train() waits
    until the program has.

    Args:
      feed_timeout: seconds to wait for room.

    Returns: a function of a partition, whose result is [whether the program wants no more rows].
    """
    return _feed.Trainer(cluster_info, cluster_meta, feed_timeout, qname)


def inference(cluster_info, feed_timeout=600, qname="input", cluster_meta=None):
    """The function of a task that feeds a partition and yields one result for each of its rows, in order."""
    return _feed.Scorer(cluster_info, cluster_meta, feed_timeout, qname)


def shutdown(cluster_info, grace_secs=0, queues=("input",), cluster_meta=None):
    """The function of a task that ends the feed of its executor's node. (TFCluster.shutdown() needs no tasks for it.)"""

    def _shutdown(iterator):
        _only(iterator)
        manager = _feed.manager_here(cluster_info, cluster_meta)
        for name in queues:
            if name != "error":
                manager.get_queue(name).put(None)
        time.sleep(grace_secs)
        return [True]

    return _shutdown
