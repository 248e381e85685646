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


class Cut(Exception):
    """The end of a task."""


def cut_after(rows, count):
    yield from rows[:count]
    raise Cut


def feed(managers, partitions, cut=lambda number: None):
    """What tasks of TFCluster.train(equal_steps=True) do. cut(number): None, or after how many rows the first attempt
    of that partition's task fails.
    """
    call = _feed.Trainer([], None, 30, "input")
    call.equal_steps()
    for number, rows in enumerate(partitions):
        for end in [e for e in (cut(number),) if e is not None] + [None]:
            trainer = _feed.Trainer([], None, 30, "input")
            trainer.call = call.call
            trainer.managers = lambda: [TFManager.connect(m.address, TOKEN) for m in managers]
            trainer.number = lambda number=number: number
            if end is None:
                assert trainer.feed(iter(rows)) == [(False, len(rows))]
            else:
                with pytest.raises(Cut):
                    trainer.feed(cut_after(rows, end))


def assigned(sizes, nodes):
    """By hand: row i of partition p is node (p + i) % nodes's."""
    counts = [0] * nodes
    for partition, size in enumerate(sizes):
        for i in range(size):
            counts[(partition + i) % nodes] += 1
    return counts


def end(managers, **assigned):
    for manager in managers:
        queue = manager.get_queue("input")
        queue.ask({"put": {"queue": "input", "mark": _wire.END_OF_EPOCH, "epoch": assigned, "timeout": 1}})
        queue.put(None)


def take(nodes, size):
    """The batches of each node, until the end of the feed."""
    seen = [[] for _ in nodes]

    def work(i):
        data = TFNode.DataFeed(nodes[i], equal_steps=True)
        while not data.should_stop():
            seen[i].append(data.next_batch(size))

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(nodes))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    return [[b for b in node if b] for node in seen]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_every_row_in_as_many_batches(nodes, seed, fails):
    """Also when the first attempt of each task ends somewhere, and its partition is fed again from the beginning."""
    rng = random.Random(seed)
    sizes = [rng.choice([0, 1, 3, 10, 100, 1000, 3000, 30000]) for _ in range(rng.randint(1, 12))] + [90]
    size, values = rng.choice([1, 7, 32, 100, 500]), iter(range(10**6))
    partitions = [[next(values) for _ in range(n)] for n in sizes]
    feed(nodes, partitions, lambda number: rng.randint(0, sizes[number]) if fails else None)
    counts = assigned(sizes, len(nodes))
    assert sum(counts) == sum(sizes) and max(counts) - min(counts) <= len(sizes)
    end(nodes, most=max(counts), least=min(counts))
    batches = take(nodes, size)
    assert [sum(map(len, node)) for node in batches] == counts
    assert len({len(b) for b in batches}) == 1 and len(batches[0]) == min(-(-max(counts) // size), min(counts))
    assert all(len(b) <= max(size, 2) for node in batches for b in node)
    assert sorted(x for node in batches for b in node for x in b) == list(range(sum(sizes)))


def test_two_attempts_at_once(nodes):
    """As when the first one's executor was cut off and goes on: rows of both come in any order, and each once."""
    call, rows = _feed.Trainer([], None, 30, "input"), list(range(40000))
    call.equal_steps()

    def attempt():
        trainer = _feed.Trainer([], None, 30, "input")
        trainer.call = call.call
        trainer.managers = lambda: [TFManager.connect(m.address, TOKEN) for m in nodes]
        trainer.feed(iter(rows))

    threads = [threading.Thread(target=attempt, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    counts = assigned([len(rows)], len(nodes))
    end(nodes, most=max(counts), least=min(counts))
    batches = take(nodes, 100)
    assert sorted(x for node in batches for b in node for x in b) == rows


@pytest.mark.parametrize("fails", [False, True])
def test_columns_of_arrow_are_sharded_as_rows_are(nodes, fails):
    pa = pytest.importorskip("pyarrow")
    call = _feed.Trainer([], None, 30, "input")
    call.equal_steps()

    def batches(sizes, until=None):
        at = 0
        for n in sizes:
            if until is not None and at >= until:
                raise Cut
            values = pa.array(range(at, at + n))
            yield pa.RecordBatch.from_arrays([values, pa.array([str(i) for i in range(at, at + n)])], ["x", "text"])
            at += n

    def trainer():
        made = _feed.Trainer([], None, 30, "input")
        made.call = call.call
        made.managers = lambda: [TFManager.connect(m.address, TOKEN) for m in nodes]
        return made

    if fails:
        with pytest.raises(Cut):
            list(trainer().arrow(batches([5, 70, 25, 100], 100)))
    (fed,) = trainer().arrow(batches([64, 1, 35, 2, 98]))  # not cut where they were
    assert fed.to_pylist() == [{"terminating": False, "fed": 200}]
    end(nodes, most=67, least=66)
    for share, node in enumerate(take(nodes, 10)):
        rows = [row for batch in node for row in batch]
        assert [(r.x, r.text) for r in rows] == [(i, str(i)) for i in range(share, 200, 3)]


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
def test_a_row_has_its_share_whatever_the_chunks(count, shares, first):
    for sizes in ([count], [1] * count, [count // 2, count - count // 2]):
        dealt, at, rows = _feed.Shares(shares, first), 0, {}
        for n in sizes:
            for share, i in dealt.of(n):
                for row in range(at + i, at + n, shares):
                    assert row not in rows
                    rows[row] = share
            at += n
        assert rows == {i: (first + i) % shares for i in range(count)}
