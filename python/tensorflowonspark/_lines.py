"""What a program writes that runs in the task: its node keeps the last lines, so that an error has them when this
process is killed, and passes all of them on to the executor's log.
"""

import contextlib
import faulthandler
import os
import sys


class Lines:
    """A pipe from this process to the node that it starts.

    Attributes: node, the file that the node inherits; None when it has it.
    """

    def __init__(self):
        reading, writing = os.pipe()
        self.node, self._program = open(reading, "rb", 0), open(writing, "wb", 0)

    def given(self):
        """The node has its end."""
        self.node.close()
        self.node = None

    @contextlib.contextmanager
    def taken(self):
        """In a `with`: stdout and stderr are the pipe, and the stacks of SIGSEGV and the like go there as well."""
        with self._program, contextlib.ExitStack() as undo:
            for fd, stream in ((1, sys.stdout), (2, sys.stderr)):
                before = os.dup(fd)
                undo.callback(os.close, before)
                undo.callback(os.dup2, before, fd)
                _flush(stream)
                os.dup2(self._program.fileno(), fd)
                undo.callback(_flush, stream)
            with contextlib.suppress(AttributeError, ValueError, OSError):
                sys.stdout.reconfigure(line_buffering=True)  # what is in a buffer is lost when the process is killed
            if not faulthandler.is_enabled():  # Spark may have its own file for it
                faulthandler.enable(2)
                undo.callback(faulthandler.disable)
            yield


def _flush(stream):
    with contextlib.suppress(AttributeError, ValueError, OSError):
        stream.flush()
