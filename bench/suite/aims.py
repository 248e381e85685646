"""How many times as fast as others this project wants to be, and in which part of their memory. A figure that falls
short stands in bold in the table, with what it should be.
"""

TORCH = {
    "lenet": 1.6,
    "cifar10_quick": 1.3,
    "cifar10_full": 1.3,
    "alexnet": 1.4,
    "googlenet": 1.4,
    "caffenet": 1.2,
    "resnet50": 1.2,
    "vgg16": 1.2,
    "mobilenet": 1.2,
}
CAFFE = {  # by one thread, by two
    "lenet": (2.6, 4.5),
    "cifar10_quick": (3.8, 6.5),
    "cifar10_full": (3.8, 6.5),
    "alexnet": (1.8, 2.5),
    "caffenet": (1.8, 2.5),
    "googlenet": (2.2, 3.5),
}
OPENVINO = 1.1
MEMORY = {"train": 60, "score": 30}  # % of Caffe's


def times(row):
    """What a row's ratio should be at least, or nothing."""
    if row["part"] == "score":
        return OPENVINO if row["peer"] == "openvino" else None
    if row["peer"] == "torch tuned":
        return TORCH.get(row["net"])
    by = CAFFE.get(row["net"]) if row["peer"] == "caffe" else None
    return by[row["threads"] - 1] if by and row["threads"] <= len(by) else None


def memory(row):
    """How many percent of the peer's memory ours should take at most, or nothing."""
    return MEMORY[row["part"]] if row["peer"] == "caffe" else None
