"""Very many clients of a reservation server."""

import concurrent.futures
import resource
import time

import pytest
import tensorflow_session  # noqa: F401  puts the package on the path

from tensorflowonspark import reservation


def test_many_reservations_at_once():
    """More clients than a process has descriptors by default; the original's server dies at 1,020."""
    count, (soft, hard) = 1500, resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * count:
        pytest.skip(f"SKIPPED: this process may have {hard} descriptors, and {2 * count} are wanted")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    server = reservation.Server(count)
    address = server.start()  # which has the default's limit to begin with
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count), hard))
    pool = concurrent.futures.ThreadPoolExecutor(8)  # each client has a process, whose start and end take a while
    clients = list(pool.map(lambda _: reservation.Client(address), range(count)))
    began = time.monotonic()
    for i, client in enumerate(clients):
        assert client.register({"node": i}) == "OK"
    assert sorted(n["node"] for n in clients[0].await_reservations()) == list(range(count))
    print(f"all {count} are there, and know it, after {time.monotonic() - began:.2f} s")
    list(pool.map(lambda client: client.close(), clients))
    server.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
