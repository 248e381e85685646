"""TFCluster.train(): epochs, each of rows for one queue after the other, the end of each, and the wait for it."""

import contextlib
import random

from tensorflowonspark import _feed, _frames, _progress, _story


def train(cluster, feeds, epochs, feed_timeout, equal_steps):
    """Feeds [(queue, rows or None)] that often, and returns when the programs have taken all of it. A call that fails
    is withdrawn: nodes feed nothing of its later epochs any more.
    """
    feeds = [(queue, rows) for queue, rows in feeds if rows is not None]
    queues = {queue for queue, _ in feeds}
    if equal_steps and queues & cluster.apart:
        raise Exception(
            "an earlier train() ended while nodes fed its later epochs, so that they stand in different ones, and "
            "steps of synchronous training would not meet: call shutdown(), and go on from the program's checkpoint in "
            "another TFCluster.run()"
        )
    with _alone(cluster, queues):
        nothing = {"replay": {"queue": [{"queue": q} for q, _ in feeds], "epochs": 0}}
        if epochs > 1 or cluster.failed:  # what an earlier call that failed has left
            _ask_nodes(cluster, "replayed", nothing)
        try:
            _feed_all(cluster, feeds, epochs, feed_timeout, equal_steps)
        except BaseException as e:
            cluster.failed.update((queue, _story.of_job(e)) for queue in queues)
            cluster.server.note(**nothing)
            cluster.progress.feed(None)
            raise
        for queue in queues:
            cluster.failed.pop(queue, None)


@contextlib.contextmanager
def _alone(cluster, queues):
    """In a `with`: no other call feeds these queues, whose epochs would be mixed; others may be fed meanwhile."""
    with cluster.lock:
        busy = queues & cluster.feeding
        if busy:
            raise Exception(
                f"a train() of queue '{min(busy)}' is going on in another thread: wait for its end, or feed another "
                "queue (the `queues` of TFCluster.run, and qname)"
            )
        cluster.feeding |= queues
    try:
        yield
    finally:
        with cluster.lock:
            cluster.feeding -= queues


def why_incomplete(cluster):
    """Why rows are missing that train() was to feed; None when none are."""
    return "; ".join(f"train() of queue '{q}' failed: {why}" for q, why in cluster.failed.items()) or None


def _feed_all(cluster, feeds, epochs, feed_timeout, equal_steps):
    with _progress.explained(cluster.server):
        ends, total = _first_epoch(cluster, feeds, epochs, feed_timeout, equal_steps)
    if epochs > 1:
        cluster.apart |= {queue for queue, _ in feeds}  # until all have fed them
        cluster.progress.feed(lambda taken: taken / max(1, total * (epochs - 1)))
        replay = {"queue": ends, "epochs": epochs - 1, "silence": feed_timeout}
        _ask_nodes(cluster, "replayed", {"replay": replay})
        cluster.apart -= {queue for queue, _ in feeds}
    for queue, _ in feeds:
        _ask_nodes(cluster, "drained", {"drained": {"queue": queue, "silence": feed_timeout}})
    cluster.progress.feed(None)


def _first_epoch(cluster, feeds, epochs, feed_timeout, equal_steps):
    """([the NodeNote.Epoch that ends each later epoch of a queue], rows in all)"""
    ends, total = [], 0
    cluster.progress.feed(lambda taken: _progress.share_of_tasks(cluster.sc, epochs))
    for queue, rows in feeds:
        feeder = cluster._feeder(feed_timeout, queue)
        feeder.keep = epochs > 1 or None
        if equal_steps:
            feeder.equal_steps()
        fed = _feed_once(feeder, rows)
        end = later = {"queue": queue}
        if equal_steps:
            counts = _ask_nodes(cluster, "counted", {"counted": {"queue": queue, "call": feeder.call}})
            end, later = (_end(queue, [c.get(which, 0) for c in counts]) for which in ("rows", "of_call"))
            fed = sum(c.get("of_call", 0) for c in counts)
        cluster.server.note(epoch=end)
        ends.append(later)
        total += fed
    return ends, total


def _end(queue, rows):
    """The end of an epoch for which the nodes have got so many rows."""
    return {"queue": queue, "most": max(rows), "least": min(rows)}


def _feed_once(feeder, data):
    """Runs the tasks that feed an RDD or a DataFrame; how many rows they fed."""
    data = _frames.plain(data)
    if hasattr(type(data), "mapInArrow") and _frames.has_arrow():
        with _frames.small_batches(data):
            return sum(r.fed for r in data.mapInArrow(feeder.arrow, "terminating boolean, fed long").collect())
    return sum(fed for _, fed in _feed.rows_of(data).mapPartitions(feeder.feed).collect())


def _ask_nodes(cluster, answer, question):
    """Asks all nodes, and waits until those that are fed have answered: their answers. Exception with what one of them
    says.
    """
    serial, answers = random.getrandbits(62), []
    cluster.progress.expect(answer, serial, answers)
    cluster.server.note(**{kind: {**fields, "serial": serial} for kind, fields in question.items()})
    cluster.server.wait(lambda: len(answers) >= len(_feed.fed_nodes(cluster.cluster_info)))
    failed = [a["failed"] for a in answers if a.get("failed")]
    if failed:
        raise Exception(failed[0])
    return answers
