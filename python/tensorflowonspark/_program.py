"""The process in which a map function runs when it does not run in the task: started by the node, an interpreter of its
own, so that no fork of Spark's Python worker is needed.

It finds in descriptor 3 two pickles, which came from the driver by way of Spark and the node's pipe: what it needs to
import anything, then the function and its arguments.
"""

import faulthandler
import os
import pickle
import sys
import traceback

COMMAND = [sys.executable, "-u", "-c", "from tensorflowonspark._program import main; main()"]
_DESCRIPTOR = 3
_PATH = "PYTHONPATH"


def pickled(fn, tf_args):
    """A map function and its arguments. TypeError names what cannot be pickled, and says what to do."""
    from pyspark import cloudpickle

    try:
        return cloudpickle.dumps((fn, tf_args))
    except Exception as e:
        what = f"map function {getattr(fn, '__name__', fn)!r}"
        try:
            cloudpickle.dumps(fn)
            what = "what tf_args has"
        except Exception:  # it is the function, perhaps beside its arguments
            pass
        raise TypeError(
            f"{what} cannot be sent to the executors: {str(e).rstrip('.')}. It may not use the SparkContext, open "
            "files, locks or other things that belong to the driver; make them inside the function"
        ) from e


def environment(environ):
    """An environment with this process's module path, as "NAME=value"."""
    paths = os.pathsep.join(p for p in sys.path if p)
    return [f"{k}={v}" for k, v in {**environ, _PATH: paths}.items()]


def payload(program, ctx, address, token, keeps_port):
    """What main() finds."""
    files = None
    try:
        from pyspark import SparkFiles

        files = SparkFiles._root_directory and os.path.abspath(SparkFiles._root_directory)
    except ImportError:
        pass
    first = {
        "path": list(sys.path),
        "python_path": os.environ.get(_PATH),
        "files": files,
        "context": {k: v for k, v in vars(ctx).items() if k not in ("mgr", "tmp_socket")},
        "address": address,
        "token": token,
        "keeps_port": keeps_port,
    }
    return pickle.dumps(first) + program


def main():
    """Runs the map function; its exception goes to the node, and the process ends with 1."""
    faulthandler.enable()  # where its threads stand, when it is killed by SIGSEGV and the like, or stuck (SIGABRT)
    with os.fdopen(_DESCRIPTOR, "rb") as stream:
        first = pickle.load(stream)
        sys.path[:] = first["path"]
        # Of the task, as processes that the program starts may be of another Python, which has modules of its own.
        os.environ.pop(_PATH, None)
        if first["python_path"] is not None:
            os.environ[_PATH] = first["python_path"]
        from tensorflowonspark import TFManager, TFSparkNode, _story
        from tensorflowonspark._lazy_pyspark import LazyPyspark

        manager = TFManager.TFManager(first["address"], first["token"])
        role = first["context"]["job_name"]
        try:
            LazyPyspark(first["files"]).install()
            fn, tf_args = pickle.load(stream)
            ctx = TFSparkNode.TFNodeContext()
            vars(ctx).update(first["context"], mgr=manager)
            if first["keeps_port"]:
                ctx.tmp_socket = manager.port()
            if isinstance(tf_args, list):
                sys.argv = tf_args
            fn(tf_args, ctx)
        except BaseException as e:
            if isinstance(e, SystemExit) and not e.code:
                return
            if isinstance(e, TFManager.NodeError):  # of another node, or of the driver, which have said why
                print(f"crema: this program is ended: {e}".splitlines()[0], file=sys.stderr)
            else:
                traceback.print_exc()
            sys.stderr.flush()
            manager.fail(_story.of_exception(role))
            sys.exit(1)
