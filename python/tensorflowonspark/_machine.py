"""What a node finds on its machine: GPUs, TensorBoard, and which executor it is in."""

import os
import shutil
import socket
import sys

from tensorflowonspark import _node, gpu_info, util


class Gpus:
    """The GPUs of a node: what Spark gave to its task, else free ones of the machine.

    Args:
      spark_has_them: whether this Spark can give GPUs to tasks.
    """

    def __init__(self, tf_args, spark_has_them):
        self.spark_has_them = spark_has_them
        self.asked = util.num_gpus_of(tf_args, None)
        self.wanted = 1 if self.asked is None else self.asked
        self.given = self._of_spark()
        self.own_choice = not self.given and "SPARK_EXECUTOR_POD_IP" not in os.environ and gpu_info.is_gpu_available()
        if self.asked and not self.given and not self.own_choice:
            raise Exception(
                f"Unable to find {self.asked} free GPU(s): Spark gives this task none and nvidia-smi finds none; set "
                "spark.task.resource.gpu.amount, or num_gpus=0"
            )

    def _of_spark(self):
        if not self.spark_has_them:
            return []
        context = util.task_context()
        resources = context.resources() if context is not None else {}
        if "gpu" not in resources:
            return []
        addresses = list(resources["gpu"].addresses)
        if self.asked is not None and len(addresses) < self.asked:
            raise Exception(f"Unable to allocate {self.asked} GPU(s) from available GPUs: {addresses}")
        return addresses if self.asked is None else addresses[: self.asked]

    def choose(self, job_name, index, environ):
        """index: of this node among those of its machine. environ: of its program."""
        chosen = self.given
        if not chosen and self.own_choice and job_name != "ps" and self.wanted:
            chosen = gpu_info.get_gpus(self.wanted, index, format=gpu_info.AS_LIST)
        util.use_gpus(",".join(chosen), environ)


def here():
    """What tells this executor from others: host, and the JVM with its start."""
    pid = _node.executor_pid() or os.getppid()
    try:
        with open(f"/proc/{pid}/stat") as f:
            started = f.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "?"
    return f"{socket.gethostname()}/{pid}.{started}"


def tensorboard(job_name, task_index, template, log_dir, executor_id):
    """(port, how to start it) for the node that shows the run; else None."""
    first = "worker" if template.get("worker") else "chief" if template.get("chief") else "master"
    if job_name != first or task_index != 0:
        return None
    port = int(os.environ.get("TENSORBOARD_PORT", 0))
    if not port:
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
    folders = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path, os.environ.get("PATH")]))
    script = shutil.which("tensorboard", path=os.pathsep.join([os.path.dirname(sys.executable), folders]))
    script = script or util.find_in_path(folders, "tensorboard/main.py")
    if not script:
        raise Exception(
            f"Unable to find 'tensorboard': {sys.executable} -m pip install tensorboard on each machine, or "
            f"tensorboard=False; looked in: {folders}"
        )
    return port, [
        sys.executable,
        script,
        f"--logdir={log_dir or f'tensorboard_{executor_id}'}",
        f"--port={port}",
        "--bind_all",
        "--reload_multifile=True",
    ]


def work_folder():
    """Where rows are kept for later epochs: the first of Spark's local folders that can be written to, as Spark keeps
    its own data there; else the working folder."""
    found = os.environ.get("SPARK_EXECUTOR_DIRS", "").split(os.pathsep)
    for name in ("LOCAL_DIRS", "SPARK_LOCAL_DIRS"):
        found += os.environ.get(name, "").split(",")
    return os.path.abspath(next((f for f in found if f and os.access(f, os.W_OK | os.X_OK)), os.getcwd()))
