"""Marks in the queues of a node."""


class Marker:
    """What is no row."""


class EndPartition(Marker):
    """Behind the last row of a partition that is fed for inference."""
