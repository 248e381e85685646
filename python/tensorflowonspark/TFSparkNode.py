"""What runs in Spark's tasks: the start of a node, and feeding."""

import time

from tensorflowonspark import TFNode, _feed, _machine, _program, _start, util


class TFNodeContext:
    """What a map function learns about its node: its second argument.

    Attributes: executor_id and worker_num (its number, 0 to the nodes - 1), job_name and task_index, cluster_spec
    ({job: ["host:port", ...]}), num_workers (nodes that train), defaultFS, working_dir, mgr (TFManager), tmp_socket (a
    socket that is bound to the node's port, with release_port=False).
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

    def local_files(self, path, share=None, **options):
        """TFNode.local_files()"""
        return TFNode.local_files(self, path, share, **options)

    def local_folder(self, path, **options):
        """TFNode.local_folder()"""
        return TFNode.local_folder(self, path, **options)

    def upload(self, local, path, **options):
        """TFNode.upload()"""
        TFNode.upload(self, local, path, **options)

    def start_cluster_server(self, num_gpus=1, rdma=False):
        """TFNode.start_cluster_server()"""
        return TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(self, sess, export_dir, tag_set, signatures):
        """TFNode.export_saved_model()"""
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(
        self, train_mode=True, qname_in="input", qname_out="output", input_mapping=None, equal_steps=False
    ):
        """TFNode.DataFeed of this node"""
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping, equal_steps)

    def release_port(self):
        """TFNode.release_port()"""
        return TFNode.release_port(self)


class TFSparkNode:
    """State of this Python worker.

    Attributes: mgr (TFManager of the last node that it started), cluster_id.
    """

    mgr = None
    cluster_id = None


def __getattr__(name):
    if name == "TF_VERSION":  # of the TensorFlow that is installed, which is not imported for it
        return util.tf_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _has_spark_resource_api():
    """Whether Spark can give GPUs to tasks (3.0 and later)."""
    from pyspark import TaskContext

    return hasattr(TaskContext, "resources")


def _get_cluster_spec(sorted_cluster_info):
    """{job: ["host:port", ...]} of what nodes say about themselves, by executor_id. Exception for an id that comes
    twice.
    """
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


def _only(iterator):
    return list(iterator)[-1]


# length: the function of the task is inside, as it is what Spark pickles
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
        executor_id, start = _only(iterator), time.monotonic()
        template = cluster_meta["cluster_template"]
        job_name, task_index = _role(template, executor_id)
        gpus = _machine.Gpus(tf_args, _has_spark_resource_api())
        if util.task_context():  # not for servers on the driver, whose folder is the user's
            util.write_executor_id(executor_id)
        in_task = not background and job_name not in stays
        node = _start.Start(cluster_meta, executor_id, job_name, task_index, queues, start, in_task)
        util.expand_hadoop_classpath(node.environ)
        board = _machine.tensorboard(job_name, task_index, template, log_dir, executor_id) if tensorboard else None
        info = node.join(board[0] if board else 0)
        spec = _get_cluster_spec(sorted(info, key=lambda n: n["executor_id"]))
        node.export(spec)
        gpus.choose(job_name, _place_on_machine(spec, job_name, task_index), node.environ)
        ctx = TFNodeContext(
            executor_id, job_name, task_index, spec, cluster_meta["default_fs"], cluster_meta["working_dir"]
        )
        TFSparkNode.mgr, TFSparkNode.cluster_id = node.manager, cluster_meta["id"]
        if board:
            node.beside(board[1])
        keeps_port = not cluster_meta.get("release_port", True)
        if in_task:
            node.here(fn, tf_args, ctx, keeps_port)
        else:
            node.compute(payload, ctx, stays=job_name in stays, keeps_port=keeps_port)

    return _mapfn


def _place_on_machine(spec, job_name, task_index):
    """Which one a node is of those with the same host in a cluster_spec."""
    addresses = [address for some in spec.values() for address in some]
    mine = spec[job_name][task_index] if task_index < len(spec.get(job_name, [])) else addresses[0]
    return util.place_on_host(addresses, addresses.index(mine))


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
    """The function of a task that ends the feed of its executor's node. (TFCluster.shutdown() needs no tasks for
    it.)
    """

    def _shutdown(iterator):
        _only(iterator)
        manager = _feed.manager_here(cluster_info, cluster_meta)
        for name in queues:
            if name != "error":
                manager.get_queue(name).put(None)
        time.sleep(grace_secs)
        return [True]

    return _shutdown
