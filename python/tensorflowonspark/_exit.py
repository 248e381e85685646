"""A driver that ends before its programs have: what it says, and its exit code."""

import atexit
import contextlib
import os
import sys
import threading

from tensorflowonspark import _training, _yarn

_driver = os.getpid()  # the process that imports this; its forks leave nothing behind that is theirs
_running = []  # clusters


def watch(cluster):
    """Until forget(): the end of this driver would end the programs of that cluster."""
    _running.append(cluster)


def forget(cluster):
    if cluster in _running:
        _running.remove(cluster)


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
    left = [c for c in _running if c.server.error is None]  # of the others the error has been raised
    if os.getpid() != _driver or not left:
        return
    for story in map(_story, left):
        print(f"crema: error: {story}", file=sys.stderr, flush=True)
        _yarn.driver_ends(story)
    atexit.unregister(_end)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)


# What is registered last is called first: this is, when the main thread has ended.
getattr(threading, "_register_atexit", lambda call, of: call(of))(atexit.register, _end)
