"""A driver that ends before its programs have: what it says, and its exit code."""

import atexit
import os
import sys

from tensorflowonspark import _yarn

_driver = os.getpid()  # the process that imports this; its forks leave nothing behind that is theirs


def left_behind(cluster, failed):
    """Called at the end of a driver that has not called shutdown(). Whoever started it learns by exit code 1 that there
    is no model: Python offers no way to set it here, so what else is to be done at the end is done first.

    Args:
      failed: why train() had failed, or None.
    """
    if os.getpid() != _driver:
        return
    programs = f"of {cluster.num_executors} node(s) are ended where they stand"
    why = (
        f"{failed}; the programs {programs}"
        if failed
        else f"the driver ended without cluster.shutdown(), which waits for the programs: those {programs}"
    )
    print(f"crema: error: {why}", file=sys.stderr, flush=True)
    _yarn.driver_ends(why)
    atexit.unregister(cluster._at_exit)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
