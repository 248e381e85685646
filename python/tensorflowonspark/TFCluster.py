"""A cluster of TensorFlow nodes on a Spark cluster: start, feed, shut down. Called on the driver.

Each node is a Spark task that starts `crema node`; the coordinator, a child of the driver, knows them all, and ends the
run for everybody with one error when one of them fails.
"""

import os
import random
import sys
import threading

from tensorflowonspark import (
    TFSparkNode,
    _allocation,
    _checks,
    _executable,
    _exit,
    _feed,
    _layout,
    _program,
    _progress,
    _story,
    _training,
    _yarn,
    reservation,
    util,
)
from tensorflowonspark.tasks import run_tasks

tf_status = {}  # of the last cluster: "error", when its start has failed


class InputMode:
    """Who reads the data."""

    TENSORFLOW = 0  #: the program, by itself
    SPARK = 1  #: Spark, which feeds it


class TFCluster:
    """A running cluster; run() makes it.

    Attributes: sc, defaultFS, working_dir, num_executors, nodeRDD, cluster_id, cluster_info (what each node says about
    itself: executor_id, host, job_name, task_index, port, tb_pid, tb_port, addr), cluster_meta, input_mode, queues,
    server.
    """

    sc = defaultFS = working_dir = num_executors = nodeRDD = cluster_id = cluster_info = cluster_meta = None
    input_mode = queues = server = starter = held = None
    ended = False

    def __init__(self):
        self.failed = {}  # queue: why the last train() that fed it has failed
        self.feeding, self.apart = set(), set()  # queues that a train() feeds; those whose nodes may be in other epochs
        self.lock = threading.Lock()  # of feeding

    def _check(self, what, qname, rows):
        assert self.input_mode == InputMode.SPARK, f"TFCluster.{what}() requires InputMode.SPARK"
        assert qname in self.queues, f"Unknown queue: {qname}"
        _checks.rows(rows, f"TFCluster.{what}()")
        if self.ended:
            raise Exception(
                f"TFCluster.{what}() after the end of this cluster ({self.status.get('error', 'shutdown()')}): "
                "TFCluster.run() starts another one"
            )

    def train(self, dataRDD, num_epochs=0, feed_timeout=600, qname="input", validation=None, equal_steps=False):
        """Feeds an RDD, a DataFrame or a DStream, and returns when the program has taken all of it, or wants no more.

        Each node gets the partitions that Spark gives to tasks on its executor, in their order. Epochs after the first
        come from copies that the nodes have kept in their work folders, in the same order; the source is read once.

        Args:
          num_epochs: how often; 0 stands for 10. Without meaning for a DStream, which is fed until it is stopped.
          feed_timeout: seconds that a program may take no rows at all while some wait for it. Then it counts as stuck:
            its node ends it, and the error says where it stood.
          validation: rows that are fed to the queue "validation" behind those of each epoch: an RDD or a DataFrame.
          equal_steps: rows are sharded over all nodes, as evenly as can be, through the network too, whatever
            the sizes of partitions; for programs with get_data_feed(equal_steps=True).

        Raises: Exception with a node's error, such as the traceback of its program. Another train() may feed more
          then; with none that succeeds, programs get an error instead of the end of their feed in shutdown().
        """
        self._check("train", qname, dataRDD)
        _checks.whole("num_epochs", num_epochs)
        assert num_epochs >= 0, "num_epochs cannot be negative"
        if hasattr(type(dataRDD), "foreachRDD"):  # a data frame of Spark Connect has every attribute
            if validation is not None or equal_steps:
                raise ValueError("a stream has no epochs: it is fed without validation and without equal_steps")
            feeder = self._feeder(feed_timeout, qname)
            dataRDD.foreachRDD(lambda rdd: rdd.foreachPartition(feeder))
            return
        _training.train(
            self, [(qname, dataRDD), ("validation", validation)], num_epochs or 10, feed_timeout, equal_steps
        )

    def _feeder(self, feed_timeout, qname):
        return TFSparkNode.train(self.cluster_info, self.cluster_meta, feed_timeout, qname)

    def inference(self, dataRDD, feed_timeout=600, qname="input"):
        """An RDD of results, one for each row of an RDD or DataFrame and in its order, partition by partition. Lazy."""
        self._check("inference", qname, dataRDD)
        if util.is_connect(self.sc):
            raise TypeError(
                "TFCluster.inference() gives an RDD, and Spark Connect has none: export the model and transform the "
                "frame by pipeline.TFModel"
            )
        return _feed.rows_of(dataRDD).mapPartitions(
            TFSparkNode.inference(self.cluster_info, feed_timeout, qname, self.cluster_meta)
        )

    def shutdown(self, ssc=None, grace_secs=0, timeout=259200):
        """Ends the feed, waits for the programs to end, and ends the nodes.

        Args:
          ssc: a StreamingContext, which is stopped when the program wants no more rows (or stop_streaming asks for it).
          grace_secs: of the original; programs are waited for anyhow, and their errors are never missed.
          timeout: seconds to wait for that, 3 days; 0 or less: without an end. Then the nodes are ended.

        Raises: Exception with the error of a node. After a train() that failed programs get an error where they wait
          for rows, as they must not take what has come for all there is.
        """
        try:
            if ssc is not None:
                self._end_stream(ssc)
            if not self.server.finish(timeout if timeout > 0 else None, _training.why_incomplete(self)):
                self.server.stuck(f"goes on {timeout:g} s after the end of its feed, the timeout of shutdown()")
            self.starter.join(60)
            if "error" in self.status:
                raise self.server.failure(self.status["error"])
        finally:
            self._stop()

    def _start_nodes(self, node_fn, ids, on_driver):
        """Runs the tasks of nodes, and those of the driver, in threads; an error of theirs goes to self.status."""

        def started(work):
            try:
                work()
            except Exception as e:
                self.status.setdefault("error", self.server.error or _story.of_job(e))

        def tasks_of_connect():
            self.sc.addTag(self.group)
            if left_idle:
                _allocation.warn("set it to false")
            run_tasks(self.sc, lambda i: node_fn(iter([ids[i]])) or "", len(ids))

        def tasks():
            self.sc.setJobGroup(self.group, "nodes of a TensorFlow cluster", interruptOnCancel=True)
            if left_idle:
                self.held = _allocation.run_kept(self.nodeRDD, node_fn)
            else:
                self.nodeRDD.foreachPartition(node_fn)

        left_idle = self.input_mode == InputMode.SPARK and _allocation.is_dynamic(self.sc)
        self.group = f"crema-nodes-{self.cluster_id:x}"
        if util.is_connect(self.sc):
            tasks = tasks_of_connect
        else:
            self.nodeRDD = self.sc.parallelize(ids, len(ids))
        for i in on_driver:
            threading.Thread(
                target=started, args=(lambda i=i: node_fn(iter([i])),), name=f"ps {i}", daemon=True
            ).start()
        self.starter = threading.Thread(target=started, args=(tasks,), name="nodes", daemon=True)
        self.starter.start()

    def _stop(self):
        """Ends the nodes at once, and their programs wherever they stand."""
        _exit.forget(self)
        self.ended = True
        self.progress.end(self.server.error)
        self.server.stop()
        if self.starter is not None and self.starter.is_alive():
            if util.is_connect(self.sc):
                self.sc.interruptTag(self.group)
            else:
                self.sc.cancelJobGroup(self.group)
        if self.held is not None:
            self.held.unpersist()

    def _end_stream(self, ssc):
        """Waits until the stream has ended or shall end, which takes Spark an interval of it and the batches that are
        there.
        """
        graceful = False  # a stream that has failed, or an impatient user, waits for no more batches
        with _progress.explained(self.server):
            try:
                while not ssc.awaitTerminationOrTimeout(0.1):
                    if self.server.error or self.server.done:
                        break
                graceful = self.server.error is None
            finally:
                ssc.stop(stopSparkContext=False, stopGraceFully=graceful)

    def tensorboard_url(self):
        """Where TensorBoard of this cluster is; None when there is none."""
        for node in self.cluster_info:
            if node["tb_port"]:
                return f"http://{node['host']}:{node['tb_port']}"
        return None


# length: the parameters are the original's, each with its line of explanation
def run(
    sc,
    map_fun,
    tf_args,
    num_executors,
    num_ps,
    tensorboard=False,
    input_mode=InputMode.TENSORFLOW,
    log_dir=None,
    driver_ps_nodes=False,
    master_node=None,
    reservation_timeout=600,
    queues=["input", "output", "error"],  # noqa: B006  as the original's signature; it is not changed
    eval_node=False,
    release_port=True,
):
    """Starts a cluster and returns when all of its nodes are there.

    Args:
      sc: SparkContext, or a session; one of Spark Connect must run where executors can reach it.
      map_fun: map_fun(args, ctx), the program; runs on each node.
      tf_args: its `args`; a list becomes sys.argv as well.
      num_executors: nodes; each takes a task slot until it is there (InputMode.SPARK) or has ended.
      num_ps: how many of them are parameter servers.
      tensorboard, log_dir: TensorBoard on one node, of that folder.
      input_mode: InputMode.
      driver_ps_nodes: parameter servers run on the driver.
      master_node: name of the job of the one chief, 'chief' or 'master'; None: no chief.
      reservation_timeout: seconds for all nodes to come.
      queues: names of the queues of each node.
      eval_node: one node is an evaluator.
      release_port: False: ctx.tmp_socket is bound to the node's port until ctx.release_port().

    Returns: TFCluster.
    Raises: AssertionError for numbers that are no cluster; Exception when the nodes do not come.
    """
    if driver_ps_nodes and input_mode != InputMode.TENSORFLOW:
        raise Exception("running PS nodes on driver locally is only supported in InputMode.TENSORFLOW")
    if eval_node and input_mode != InputMode.TENSORFLOW:
        raise Exception("running evaluator nodes is only supported in InputMode.TENSORFLOW")
    modes = {"TENSORFLOW": InputMode.TENSORFLOW, "SPARK": InputMode.SPARK}
    _checks.run_arguments(sc, map_fun, num_executors, num_ps, input_mode, modes)
    sc = util.context_of(sc)
    _checks.spark_settings(_allocation.settings(sc))
    template = _layout.template(num_executors, num_ps, master_node, eval_node)
    if not util.is_connect(sc):
        _checks.slots(sc.master, num_executors - (num_ps if driver_ps_nodes else 0))
        _yarn.watch(sc)
    _program.pickled(map_fun, tf_args)
    _executable.ship(sc)
    cluster = _new_cluster(sc, num_executors, template, input_mode, queues, reservation_timeout)
    meta = cluster.cluster_meta
    meta.update(cluster_template=template, release_port=release_port, reservation_timeout=reservation_timeout)
    background = input_mode == InputMode.SPARK
    node_fn = TFSparkNode.run(map_fun, tf_args, meta, tensorboard, log_dir, queues, background)
    on_driver = template["ps"] if driver_ps_nodes and num_ps else []
    try:
        cluster._start_nodes(node_fn, [i for i in range(num_executors) if i not in on_driver], on_driver)
        nodes = cluster.server.await_reservations(sc, cluster.status, reservation_timeout)
        cluster.cluster_info = sorted(nodes, key=lambda n: n["executor_id"])
        _layout.check_unique(cluster.cluster_info)
    except BaseException:
        cluster._stop()
        raise
    _exit.watch(cluster)
    if cluster.tensorboard_url():
        print(f"crema: TensorBoard is at {cluster.tensorboard_url()}", file=sys.stderr)
    return cluster


def _new_cluster(sc, num_executors, template, input_mode, queues, reservation_timeout):
    """A TFCluster whose coordinator runs."""
    global tf_status
    cluster = TFCluster()
    cluster.status = tf_status = {}  # its own: tasks of a cluster before may still report
    cluster.sc, cluster.input_mode, cluster.queues = sc, input_mode, queues
    cluster.num_executors, cluster.cluster_id = num_executors, random.getrandbits(64)
    cluster.defaultFS, cluster.working_dir = util.default_fs(sc), os.getcwd()
    cluster.progress = _progress.Progress(_layout.roles(template))
    encrypted = util.encrypts(sc)
    cluster.server = reservation.Server(num_executors, reservation_timeout, cluster.progress.take, encrypted)
    cluster.server.late = cluster.progress.late
    cluster.cluster_meta = {
        "id": cluster.cluster_id,
        "num_executors": num_executors,
        "default_fs": cluster.defaultFS,
        "working_dir": cluster.working_dir,
        "encrypted": encrypted,
        "server_addr": cluster.server.start(),
        "token": _layout.Secret(cluster.server.token),
    }
    return cluster
