"""Equal steps: nodes that are assigned rows of any number take as many batches, and every row is in one of them."""

import random
import threading

import pytest

np = pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import TFManager, TFNode, _feed, _wire  # noqa: E402

TOKEN = b"a token of these tests"


@pytest.fixture
def nodes():
    managers = [TFManager.start(TOKEN, ["input", "output", "error"]) for _ in range(3)]
    yield managers
    for manager in managers:
        manager.shutdown()


def feed(managers, partitions):
    """What tasks of TFCluster.train(equal_steps=True) do; how many rows each node was assigned."""
    assigned = []
    for number, rows in enumerate(partitions):
        trainer = _feed.Trainer([], None, 30, "input")
        trainer.equal_steps = True
        trainer.managers = lambda: [TFManager.connect(m.address, TOKEN) for m in managers]
        trainer.number = lambda number=number: number
        assigned.append(trainer.assign(iter(rows))[0][1])
    return [sum(of_node) for of_node in zip(*assigned)]


def end(managers, **assigned):
    for manager in managers:
        queue = manager.get_queue("input")
        queue.ask({"put": {"queue": "input", "mark": _wire.END_OF_EPOCH, "epoch": assigned, "timeout": 1}})
        queue.put(None)


@pytest.mark.parametrize("seed", range(12))
def test_every_row_in_as_many_batches(nodes, seed):
    rng = random.Random(seed)
    sizes = [rng.choice([0, 1, 3, 10, 100, 1000, 3000]) for _ in range(rng.randint(1, 12))] + [90]
    size, values = rng.choice([1, 7, 32, 100, 500]), iter(range(10**6))
    assigned = feed(nodes, [[next(values) for _ in range(n)] for n in sizes])
    assert sum(assigned) == sum(sizes) and max(assigned) - min(assigned) <= len(sizes)
    end(nodes, most=max(assigned), least=min(assigned))
    seen = [[] for _ in nodes]

    def take(i):
        data = TFNode.DataFeed(nodes[i], equal_steps=True)
        while not data.should_stop():
            seen[i].append(data.next_batch(size))

    threads = [threading.Thread(target=take, args=(i,), daemon=True) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    batches = [[b for b in node if b] for node in seen]
    assert len({len(b) for b in batches}) == 1 and len(batches[0]) == min(-(-max(assigned) // size), min(assigned))
    assert all(len(b) <= max(size, 2) for node in batches for b in node)
    assert sorted(x for node in batches for b in node for x in b) == list(range(sum(sizes)))


def test_rows_that_were_not_dealt_out_are_refused(nodes):
    nodes[0].get_queue("input").put_rows([1, 2, 3])
    end(nodes[:1])
    with pytest.raises(ValueError, match=r"equal_steps wants rows sharded evenly: TFCluster.train"):
        TFNode.DataFeed(nodes[0], equal_steps=True).next_batch(2)


def test_fewer_rows_than_nodes_are_said(nodes):
    nodes[0].get_queue("input").put_rows([1])
    end(nodes, most=1, least=0)
    for node in nodes:
        with pytest.raises(ValueError, match="one node has 1 rows and another 0 has no equal number of steps for all"):
            TFNode.DataFeed(node, equal_steps=True).next_batch(10)


@pytest.mark.parametrize("count, shares, first", [(10, 3, 0), (10, 3, 2), (2, 5, 4), (0, 3, 1), (9, 3, 7)])
def test_shares_are_even(count, shares, first):
    places = _feed.shared_out(count, shares, first)
    sizes = [sum(b - a for s, a, b in places if s == share) for share in range(shares)]
    assert sum(sizes) == count and max(sizes) - min(sizes) <= 1
    assert [a for _, a, _ in places] == [0, *(b for _, _, b in places)][: len(places)]
    assert all(sizes[(first + i) % shares] == count // shares + 1 for i in range(count % shares))
