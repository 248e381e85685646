"""The start of a node, from its process to its program."""

import json
import os
import socket
import sys
import threading
import time
import traceback

from tensorflowonspark import TFManager, _about, _hadoop, _lines, _machine, _node, _program, _story, reservation, util


class Start:
    """A node, from its process to its program.

    Args:
      in_task: the program runs in this process: here(), and not compute().
    """

    def __init__(self, cluster_meta, executor_id, job_name, task_index, queues, start, in_task=False):
        self.meta, self.executor_id, self.job_name, self.task_index = cluster_meta, executor_id, job_name, task_index
        self.host = util.get_ip_address()
        self.token = reservation.token_of(cluster_meta)
        context = util.task_context()
        # Of the program: of this process where it runs here. Servers on the driver must not change the driver's.
        self.environ = os.environ if context or in_task else dict(os.environ)
        fixed = os.environ.get("TENSORFLOW_PORT")
        self.fixed_port = int(fixed) if fixed else None
        host, port = cluster_meta["server_addr"]
        job = {
            "coordinator": f"{socket.gethostbyname(host)}:{port}",
            "host": self.host,
            "token": self.token,
            "encrypted": bool(cluster_meta.get("encrypted")),
            "attempt": context.attemptNumber() if context else 0,
            "join_timeout": cluster_meta.get("reservation_timeout", 600),
            "step_timeout": 60,
            "task_seconds": time.monotonic() - start,
            "node": {
                "queue": sorted(
                    {*queues, "error", "validation", *(("control",) if job_name in ("ps", "evaluator") else ())}
                ),
                "unfed": job_name in ("ps", "evaluator"),
                "port": -1 if self.fixed_port else 0,
                "executor": _node.executor_pid(),
                "work_folder": _machine.work_folder(),
            },
        }
        self.lines = _lines.Lines() if in_task else None
        self.process = _node.NodeProcess(job, self.lines)
        self.address, self.port, self.feed = self.process.ready(time.monotonic() + 60)
        self.manager = TFManager.TFManager(self.address, self.token)

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
            "executor": _machine.here(),
        }
        self.process.say(join={"about": _about.about(mine)})
        return [json.loads(a["meta"]) for a in self.process.started()]

    def export(self, spec):
        """TF_CONFIG, when the cluster has a chief."""
        if "master" in spec or "chief" in spec:
            task = {"type": self.job_name, "index": self.task_index}
            self.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": task, "environment": "cloud"})
        else:
            self.environ.pop("TF_CONFIG", None)

    def _run(self, argument, **fields):
        here = {"environment": _program.environment(self.environ), "folder": os.getcwd()}
        self.process.say(compute={"argument": argument, **here, **fields})

    def beside(self, argument):
        """Starts what serves the program, and ends with it."""
        self._run(argument, beside=True)

    def compute(self, payload, ctx, stays, keeps_port):
        """Starts the program in a process of its own; waits for the end of one that stays, as its slot is not for
        feeding.
        """
        found = _program.payload(payload, ctx, self.address, self.token, keeps_port)
        self._run(_program.COMMAND, payload=found, stays=stays)
        self.process.computing()
        if stays:
            self.process.over()
        else:
            self.process.leave()

    def here(self, fn, tf_args, ctx, keeps_port):
        """Runs the program in this task."""
        self.process.say(here={})
        ctx.mgr = self.manager
        if keeps_port:
            ctx.tmp_socket = ctx.mgr.port()
        if isinstance(tf_args, list):
            sys.argv = tf_args
        threading.Thread(target=self._watch, args=(threading.get_ident(),), name="node", daemon=True).start()
        try:
            with self.lines.taken():
                fn(tf_args, ctx)
        except BaseException:
            self.process.say(ended={"failed": _story.of_exception(ctx.job_name)})
            raise
        finally:
            _hadoop.remove_copies()
        self.process.say(ended={})

    def _watch(self, program):
        """Says where the program stands, a thread of that number, when the node asks for it."""
        try:
            self.process.stuck()
        except (OSError, RuntimeError, ValueError):
            return  # the node has ended
        frame = sys._current_frames().get(program)
        self.process.say(ended={"failed": "".join(traceback.format_stack(frame)) if frame else "its thread has ended"})
