"""What a program writes that runs in the task: the real `crema node`, without Spark."""

import os
import subprocess
import time

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import TFSparkNode, _start, reservation


def test_lines_of_a_program_in_the_task_pass_through_its_node(capfd):
    """They reach the log all the same, and the task has its stdout and stderr again afterwards."""
    server = reservation.Server(1)
    meta = {"server_addr": server.start(), "token": server.token, "reservation_timeout": 30}
    node = _start.Start(meta, 0, "worker", 0, ["input"], time.monotonic(), in_task=True)
    node.join(0)

    def program(args, ctx):
        assert os.readlink("/proc/self/fd/1") == os.readlink("/proc/self/fd/2")
        os.write(1, b"one line\n")
        subprocess.run(["sh", "-c", "echo one of a child >&2"], check=True)

    before = [os.readlink(f"/proc/self/fd/{fd}") for fd in (1, 2)]
    node.here(program, {}, TFSparkNode.TFNodeContext(), False)
    assert [os.readlink(f"/proc/self/fd/{fd}") for fd in (1, 2)] == before
    os.write(1, b"one behind it\n")
    assert server.finish(30)
    seen = capfd.readouterr()
    assert seen.out == "one behind it\n" and "one line\none of a child\n" in seen.err
    server.stop()
