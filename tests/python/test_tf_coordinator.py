"""The driver's coordinator, and what must not end it: the real `crema coordinator`, without Spark."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

import spark_session  # noqa: F401  puts python/ on the path

from conftest import ROOT
from tensorflowonspark import reservation

DRIVER = """
import os, signal, sys, time
from tensorflowonspark import _node, reservation
server = reservation.Server(1)
address = server.start()
node = _node.NodeProcess({"host": "127.0.0.1", "token": server.token, "node": {"queue": ["input"], "alone": True}})
node.ready(time.monotonic() + 60)
try:
    print("up", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    assert server._coordinator.running(), "the coordinator has ended"
    assert node._process.poll() is None, "the node has ended"
    reservation.Client(address).register({"node": 0})
    assert server.await_reservations(timeout=30) == [{"node": 0}]
    server.stop()
    node.close()
    print("still here")
"""


def test_an_interrupt_of_the_driver_does_not_end_its_coordinator():
    """Ctrl-C on a terminal, and a notebook's, go to the whole process group of the driver."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert driver.stdout.readline() == "up\n"
        os.killpg(driver.pid, signal.SIGINT)
        assert driver.communicate(timeout=60)[0] == "still here\n"
    finally:
        driver.kill()


def test_the_coordinator_outlives_the_thread_that_has_started_it():
    server = reservation.Server(2)

    def start():
        address = server.start()
        reservation.Client(address).register({"node": 0})  # answered: it is up, and has said how it wants to end
        return address

    with concurrent.futures.ThreadPoolExecutor() as pool:
        address = pool.submit(start).result(60)
    time.sleep(1)
    reservation.Client(address).register({"node": 1})
    assert server.await_reservations(timeout=30) == [{"node": 0}, {"node": 1}]
    server.stop()


def test_a_coordinator_that_cannot_be_started_is_named(monkeypatch):
    monkeypatch.setenv("CREMA_EXECUTABLE", str(ROOT))  # a folder, which execve() refuses
    try:
        reservation.Server(1).start()
    except PermissionError as e:
        assert str(ROOT) in str(e)
    else:
        raise AssertionError("no error")
