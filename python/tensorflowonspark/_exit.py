"""A driver that ends before its programs have: what it says, and its exit code."""

import atexit
import contextlib
import functools
import os
import sys
import threading

from tensorflowonspark import _training, _yarn

_driver = os.getpid()  # the process that imports this; its forks leave nothing behind that is theirs
_running = []  # clusters
_left = []  # what was said of those that Spark's end has ended


def watch(cluster):
    """Until forget(): the end of this driver, or of its SparkContext, would end the programs of that cluster."""
    _running.append(cluster)
    sc = cluster.sc
    if not hasattr(sc, "stop") or hasattr(sc, "crema_stop"):
        return
    sc.crema_stop, sc.stop = sc.stop, functools.partial(_stop, sc)


def forget(cluster):
    if cluster in _running:
        _running.remove(cluster)


def _stop(sc):
    """SparkContext.stop(), which would end nodes as if their executors were lost."""
    for cluster in [c for c in _running if c.sc is sc]:
        if not cluster.server.reported:
            _leave(cluster)
        cluster._stop()
    sc.crema_stop()


def _leave(cluster):
    story = _story(cluster)
    print(f"crema: error: {story}", file=sys.stderr, flush=True)
    _yarn.driver_ends(story)
    _left.append(story)


def _story(cluster):
    failed, programs = _training.why_incomplete(cluster), f"of {cluster.num_executors} node(s) are ended"
    if failed:
        return f"{failed}; the programs {programs} where they stand"
    return (
        f"the driver ended without cluster.shutdown(), which waits for the programs: those {programs} where they stand"
    )


def _end():
    """Whoever started the driver learns by exit code 1 that there is no model. Python offers no way to set it here but
    to end at once, so what else is registered is called first.
    """
    if os.getpid() != _driver:
        return
    for cluster in [c for c in _running if not c.server.reported]:
        _leave(cluster)
    if not _left:
        return
    atexit.unregister(_end)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)


# What is registered last is called first: this is, when the main thread has ended.
getattr(threading, "_register_atexit", lambda call, of: call(of))(atexit.register, _end)
