"""Every public function of the original takes its arguments here: names, order and defaults (version 2.2.5)."""

import importlib
import inspect

import pytest

pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

ORIGINAL = {
    "TFCluster.TFCluster.train": "dataRDD, num_epochs=0, feed_timeout=600, qname='input'",
    "TFCluster.TFCluster.inference": "dataRDD, feed_timeout=600, qname='input'",
    "TFCluster.TFCluster.shutdown": "ssc=None, grace_secs=0, timeout=259200",
    "TFCluster.TFCluster.tensorboard_url": "",
    "TFCluster.run": (
        "sc, map_fun, tf_args, num_executors, num_ps, tensorboard=False, "
        "input_mode=InputMode.TENSORFLOW, log_dir=None, driver_ps_nodes=False, master_node=None, "
        "reservation_timeout=600, queues=['input', 'output', 'error'], eval_node=False, "
        "release_port=True"
    ),
    "TFNode.hdfs_path": "ctx, path",
    "TFNode.start_cluster_server": "ctx, num_gpus=1, rdma=False",
    "TFNode.next_batch": "mgr, batch_size, qname='input'",
    "TFNode.export_saved_model": "sess, export_dir, tag_set, signatures",
    "TFNode.release_port": "ctx",
    "TFNode.batch_results": "mgr, results, qname='output'",
    "TFNode.terminate": "mgr, qname='input'",
    "TFNode.DataFeed": "mgr, train_mode=True, qname_in='input', qname_out='output', input_mapping=None",
    "TFNode.DataFeed.next_batch": "batch_size",
    "TFNode.DataFeed.should_stop": "",
    "TFNode.DataFeed.batch_results": "results",
    "TFNode.DataFeed.terminate": "",
    "TFSparkNode.TFNodeContext": (
        "executor_id=0, job_name='', task_index=0, cluster_spec={}, defaultFS='file://', "
        "working_dir='.', mgr=None, tmp_socket=None"
    ),
    "TFSparkNode.TFNodeContext.absolute_path": "path",
    "TFSparkNode.TFNodeContext.start_cluster_server": "num_gpus=1, rdma=False",
    "TFSparkNode.TFNodeContext.export_saved_model": "sess, export_dir, tag_set, signatures",
    "TFSparkNode.TFNodeContext.get_data_feed": (
        "train_mode=True, qname_in='input', qname_out='output', input_mapping=None"
    ),
    "TFSparkNode.TFNodeContext.release_port": "",
    "TFSparkNode.run": "fn, tf_args, cluster_meta, tensorboard, log_dir, queues, background",
    "TFSparkNode.train": "cluster_info, cluster_meta, feed_timeout=600, qname='input'",
    "TFSparkNode.inference": "cluster_info, feed_timeout=600, qname='input'",
    "TFSparkNode.shutdown": "cluster_info, grace_secs=0, queues=['input']",
    "TFManager.start": "authkey, queues, mode='local'",
    "TFManager.connect": "address, authkey",
    "reservation.Reservations": "required",
    "reservation.Reservations.add": "meta",
    "reservation.Reservations.done": "",
    "reservation.Reservations.get": "",
    "reservation.Reservations.remaining": "",
    "reservation.Server": "count",
    "reservation.Server.await_reservations": "sc, status={}, timeout=600",
    "reservation.Server.start": "",
    "reservation.Server.get_server_ip": "",
    "reservation.Server.get_server_ports": "",
    "reservation.Server.start_listening_socket": "",
    "reservation.Server.stop": "",
    "reservation.Client": "server_addr",
    "reservation.Client.close": "",
    "reservation.Client.register": "reservation",
    "reservation.Client.get_reservations": "",
    "reservation.Client.await_reservations": "",
    "reservation.Client.request_stop": "",
}
# What is another value, and means the same.
SAME = {"InputMode.TENSORFLOW": "0", "queues=['input']": "queues=('input',)", "status={}": "status=None"}


@pytest.mark.parametrize("name", ORIGINAL)
def test_signatures_of_the_runtime(name):
    """Ours may have more behind them, all with defaults; where the original has no default, ours may have one."""
    module, *path = name.split(".")
    function = importlib.import_module("tensorflowonspark." + module)
    for part in path:
        function = getattr(function, part)
    ours = [str(p) for p in inspect.signature(function).parameters.values() if p.name != "self"]
    wanted = parameters_of(ORIGINAL[name])
    assert len(ours) >= len(wanted)
    for mine, theirs in zip(ours, wanted):
        assert mine == theirs or mine == theirs + "=None", (mine, theirs)
    assert all("=" in extra for extra in ours[len(wanted) :])


def parameters_of(text):
    """The parameters of a text, as inspect shows them."""
    for theirs, same in SAME.items():
        text = text.replace(theirs, same)
    scope = {}
    exec(f"def function({text}): pass", scope)
    return [str(p) for p in inspect.signature(scope["function"]).parameters.values()]
