"""Who is what in a cluster, and what its nodes must agree on."""


def template(num_executors, num_ps, master_node, eval_node):
    """{job: executor ids}: ps first, then the chief, the evaluator and the workers."""
    wanted = num_ps + (1 if master_node else 0) + (1 if eval_node else 0)
    assert num_executors >= wanted, (
        f"TensorFlow cluster requires {wanted} nodes, but only {num_executors} executors available"
    )
    workers = max(num_executors - wanted, 0)
    assert workers > 0 or master_node, "TensorFlow cluster requires at least one worker or master/chief node"
    ids = iter(range(num_executors))
    template = {}
    for job, count in (
        ("ps", num_ps),
        (master_node, 1 if master_node else 0),
        ("evaluator", 1 if eval_node else 0),
        ("worker", workers),
    ):
        if count:
            template[job] = [next(ids) for _ in range(count)]
    return template


def roles(template):
    """{executor_id: "worker:0"}"""
    return {i: f"{job}:{place}" for job, ids in template.items() for place, i in enumerate(ids)}


class Secret(bytes):
    """Does not show itself in logs."""

    def __repr__(self):
        return "<secret>"

    __str__ = __repr__

    def __reduce__(self):
        return Secret, (bytes(self),)


def check_unique(nodes):
    """Exception for two nodes that are one, or that want one port of their machine."""
    seen, ports = set(), {}
    for node in nodes:
        key = (node["host"], node["executor_id"])
        if key in seen:
            raise Exception(
                f"Duplicate cluster node id detected (host={key[0]}, executor_id={key[1]}): please ensure that the "
                "number of executors is at least the number of TensorFlow nodes, and that failed tasks are not repeated"
            )
        seen.add(key)
        other = ports.setdefault((node["host"], node["port"]), node)
        if other is not node:
            raise Exception(
                f"nodes {other['executor_id']} and {node['executor_id']} both want port {node['port']} of host "
                f"{node['host']}: TENSORFLOW_PORT names one port for each machine; leave it unset, so that each node "
                "finds one of its own, or have one node on each machine"
            )
