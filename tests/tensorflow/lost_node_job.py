"""A job that test_tf_lost_node.py submits to three executors: one is killed while the last node is awaited.

lost_node_job.py FOLDER: a file of each program, which says the number of its task's attempt.
"""

import json
import os
import pathlib
import signal
import sys
import threading
import time

import pyspark

from tensorflowonspark import TFCluster, reservation

DEADLINE = 120


def until(what):
    deadline = time.monotonic() + DEADLINE
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)


def say_attempt(args, ctx):
    attempt = pyspark.TaskContext.get().attemptNumber()
    with open(f"{args}/{ctx.executor_id}.json", "x") as f:  # twice would be an error
        json.dump(attempt, f)


servers = []


class Server(reservation.Server):
    def __init__(self, *args):
        super().__init__(*args)
        servers.append(self)


def main(folder):
    sc = pyspark.SparkContext()
    until(lambda: sc._jsc.sc().getExecutorMemoryStatus().size() == 4)
    taken, free = pathlib.Path(folder, "taken"), pathlib.Path(folder, "free")

    def take_a_slot(_):
        taken.touch()
        until(free.exists)

    slot = threading.Thread(target=lambda: sc.parallelize([0], 1).foreach(take_a_slot))
    slot.start()
    until(taken.exists)
    reservation.Server = Server

    def kill_one():
        until(lambda: servers and servers[0].reservations.remaining() == 1)
        executor = servers[0].reservations.get()[0]["executor"]
        os.kill(int(executor.rpartition("/")[2].partition(".")[0]), signal.SIGKILL)
        until(lambda: servers[0].reservations.remaining() == 2)
        until(lambda: servers[0].reservations.remaining() == 1)
        free.touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    TFCluster.run(sc, say_attempt, folder, 3, 0, reservation_timeout=DEADLINE).shutdown()
    killer.join(DEADLINE)
    slot.join(DEADLINE)


if __name__ == "__main__":
    main(sys.argv[1])
