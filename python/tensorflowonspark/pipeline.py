"""TensorFlow programs as stages of Spark ML pipelines.

    estimator = TFEstimator(train_fn, args).setInputMapping({"image": "x", "label": "y"}).setClusterSize(3) ...
    model = estimator.fit(frame)                       # train_fn(args, ctx) on every node, rows fed by Spark
    model.setInputMapping({"image": "x"}).setOutputMapping({"scores": "prediction"}).transform(frame)

A TFModel scores a SavedModel, one copy in each Python worker of Spark; it need not have come from an estimator.
"""

import functools
import logging
import random
import sys

from . import tasks, util
from .batches import yield_batch  # noqa: F401
from .params import (  # noqa: F401  names of this module in TensorFlowOnSpark
    CLUSTER_DEFAULTS,
    Estimator,
    HasBatchSize,
    HasClusterOptions,
    HasClusterSize,
    HasEpochs,
    HasExportDir,
    HasGraceSecs,
    HasInputMapping,
    HasInputMode,
    HasMasterNode,
    HasModelDir,
    HasNumPS,
    HasOutputMapping,
    HasPassThrough,
    HasProtocol,
    HasReaders,
    HasSignatureDefKey,
    HasSteps,
    HasTagSet,
    HasTensorboard,
    HasTFRecordDir,
    Model,
    Namespace,
    TFParams,
    TFTypeConverters,
)
from .saving import Saveable

logger = logging.getLogger(__name__)

SPARK = 1  # InputMode.SPARK


def __getattr__(name):
    if name == "TF_VERSION":
        return util.tf_version()
    raise AttributeError(f"module {__name__} has no attribute '{name}'")


class TFEstimator(
    Estimator,
    TFParams,
    HasInputMapping,
    HasClusterSize,
    HasNumPS,
    HasInputMode,
    HasMasterNode,
    HasProtocol,
    HasGraceSecs,
    HasTensorboard,
    HasModelDir,
    HasExportDir,
    HasTFRecordDir,
    HasBatchSize,
    HasEpochs,
    HasReaders,
    HasSteps,
    HasClusterOptions,
    Saveable,
):
    """Trains on a data frame's columns: train_fn(args, ctx) runs on cluster_size nodes, and the columns of
    input_mapping are fed in the order of their names.

    tf_args: arguments of the program, a dict, a namespace, or a list of words (sys.argv). train_fn gets them with the
    params beside; a list it gets as it is. export_fn(args) is called once after the training, on one executor, to
    write the SavedModel to export_dir, for programs that do not write it at the end of train_fn.
    """

    functions = ("train_fn", "export_fn")
    train_fn = None
    export_fn = None

    def __init__(self, train_fn, tf_args, export_fn=None):
        super().__init__()
        self.train_fn = train_fn
        self.export_fn = export_fn
        self.args = Namespace(tf_args)
        self._setDefault(
            input_mapping={},
            cluster_size=1,
            num_ps=0,
            driver_ps_nodes=False,
            input_mode=SPARK,
            master_node="chief",
            protocol="grpc",
            tensorboard=False,
            model_dir=None,
            export_dir=None,
            tfrecord_dir=None,
            batch_size=100,
            epochs=1,
            readers=1,
            steps=1000,
            grace_secs=30,
            **CLUSTER_DEFAULTS,
        )

    def _fit(self, dataset):
        from . import transform

        if not self.getInputMapping():
            raise ValueError("input_mapping is empty; set it to {column: tensor}, for the columns that are fed")
        columns = transform.named(dataset, sorted(self.getInputMapping()), "input_mapping")
        args = self.merge_args_params()
        if self.export_fn:
            assert args.export_dir, "Export function requires --export_dir to be set"
        logger.info("training with %s", args)
        tf_args = self.args.argv or args
        sc = util.context_of(dataset.sparkSession)
        self._train(sc, dataset.select(columns), tf_args, args)
        if self.export_fn:
            logger.info("exporting to %s", args.export_dir)
            tasks.run_tasks(sc, functools.partial(_export, self.export_fn, tf_args), 1)
        return self._copyValues(TFModel(self.args))

    def _train(self, sc, frame, tf_args, args):
        from . import TFCluster, _feed, transform

        cluster = TFCluster.run(
            sc,
            self.train_fn,
            tf_args,
            args.cluster_size,
            args.num_ps,
            args.tensorboard,
            TFCluster.InputMode.SPARK,
            log_dir=self.getLogDir(),
            driver_ps_nodes=args.driver_ps_nodes,
            master_node=args.master_node,
            reservation_timeout=self.getReservationTimeout(),
            eval_node=self.getEvalNode(),
            release_port=self.getReleasePort(),
        )
        try:
            rows = frame if transform.uses_arrow(frame) else _feed.rows_of(frame)
            cluster.train(rows, args.epochs, feed_timeout=self.getFeedTimeout())
        except BaseException:
            cluster._stop()  # nobody else has this cluster, and nobody may export a model of some of the rows
            raise
        cluster.shutdown(grace_secs=self.getGraceSecs(), timeout=self.getShutdownTimeout())


def _export(export_fn, tf_args, number):
    single_node_env(tf_args)
    export_fn(tf_args)
    return ""


class TFModel(
    Model,
    TFParams,
    HasInputMapping,
    HasOutputMapping,
    HasBatchSize,
    HasModelDir,
    HasExportDir,
    HasSignatureDefKey,
    HasTagSet,
    HasPassThrough,
    Saveable,
):
    """Scores the SavedModel in export_dir; what this needs of TensorFlow happens on the executors alone.

    input_mapping: {column: tensor}, output_mapping: {tensor: column}, tensors by their names in the signature.
    signature_def_key: None takes serving_default, or the only signature. The output has the columns of pass_through
    (none by default), then those of output_mapping in the order of the tensors' names; rows keep their order. A tensor
    of n rows becomes a column of its own type, of rank above 1 nested arrays; a string tensor becomes binary.
    Rows are scored in batches of batch_size, which do not cross partitions. What TensorFlow cannot open, as on HDFS,
    is copied once for each executor.
    """

    def __init__(self, tf_args):
        super().__init__()
        self.args = Namespace(tf_args)
        self._setDefault(
            input_mapping={},
            output_mapping={},
            batch_size=100,
            model_dir=None,
            export_dir=None,
            signature_def_key=None,
            tag_set=None,
            pass_through=[],
        )

    def _transform(self, dataset):
        from . import scoring, transform  # need numpy

        args = self.merge_args_params()
        assert args.export_dir, "Inferencing requires --export_dir argument"
        logger.info("scoring with %s", args)
        outputs = sorted(args.output_mapping.items())
        frame, kept, inputs = transform.selected(
            dataset, sorted(args.input_mapping.items()), outputs, args.pass_through
        )
        plan = scoring.Plan(
            export_dir=args.export_dir,
            tags=tuple(tag.strip() for tag in (args.tag_set or "").split(",") if tag.strip()),
            signature=args.signature_def_key,
            inputs=inputs,
            outputs=tuple(outputs),
            batch_size=args.batch_size,
            prepare=functools.partial(single_node_env, self.args.argv or args),
            number=random.getrandbits(62),
        )
        return transform.scored(plan, frame, kept)


def single_node_env(args):
    """Prepares a task's process for a TensorFlow that runs alone: sys.argv, CLASSPATH, GPUs (util.single_node_env)."""
    argv = args if isinstance(args, list) else getattr(args, "argv", None)
    if argv:
        sys.argv = argv
    util.single_node_env(util.num_gpus_of(args))


def get_meta_graph_def(saved_model_dir, tag_set):
    """The MetaGraphDef of a SavedModel with exactly these tags (commas between), without loading it."""
    from . import scoring

    graphs = scoring.meta_graphs(saved_model_dir)
    for graph in graphs:
        if set(graph.meta_info_def.tags) == set(tag_set.split(",")):
            return graph
    known = "; ".join(",".join(sorted(graph.meta_info_def.tags)) for graph in graphs)
    raise RuntimeError(
        f"MetaGraphDef associated with tag-set {tag_set} could not be found in SavedModel "
        f"{saved_model_dir}; it has: {known}"
    )
