"""Runs training and collects results for comparison: hashes of the files written, values of the tests printed."""

import dataclasses
import re
import struct

from conftest import crema, sha256


@dataclasses.dataclass(frozen=True)
class Trained:
    """Outcomes are equal when model, solver state and every test result are."""

    model: str
    state: str
    tests: tuple
    log: str = dataclasses.field(compare=False, repr=False)

    @property
    def files(self):
        return self.model, self.state


def train(folder, *flags):
    """`crema train` of the folder's solver.prototxt, to its max_iter."""
    last = re.search(r"max_iter: (\d+)", (folder / "solver.prototxt").read_text())[1]
    done = crema("train", "-solver", "solver.prototxt", *flags, cwd=folder)
    assert done.code == 0, done.err[-3000:]
    files = (sha256(folder / f"snap_iter_{last}.{kind}") for kind in ("caffemodel", "solverstate"))
    return Trained(*files, tuple(re.findall(r"Test net output #\d+: (.*)", done.err)), done.err)


def instruction_sets(folder):
    """The instruction sets of the executable that this CPU has, by trying each; says which it lacks."""
    wrong = crema("train", "-solver", "solver.prototxt", "-isa", "none", cwd=folder).err
    names = re.split(", | or ", re.search("-isa must be (.+), not 'none'", wrong)[1])

    def tried(name):
        return crema("train", "-solver", "solver.prototxt", "-isa", name, cwd=folder).err

    lacking = [name for name in names if "this CPU does not have it" in tried(name)]
    for name in lacking:
        print(f"SKIPPED PART: this CPU has no {name}")
    return [name for name in names if name not in lacking]


def one_outcome(folder, ranks, ways):
    """Trains with each of (workers, threads, isa or ""); returns the one outcome, and fails where two differ, also in
    what they display: rank 0's outputs.
    """
    found = {}
    for workers, threads, isa in ways:
        found[workers, threads, isa] = train(
            folder, "-ranks", ranks, "-workers", workers, "-threads", threads, *(["-isa", isa] if isa else [])
        )
    assert len(set(found.values())) == 1, found
    shown = {way: tuple(re.findall(r"Train net output #\d+: (.*)", one.log)) for way, one in found.items()}
    assert len(set(shown.values())) == 1, shown
    return next(iter(found.values()))


def with_max_iter(folder, count):
    text = (folder / "solver.prototxt").read_text()
    (folder / "solver.prototxt").write_text(re.sub(r"max_iter: \d+", f"max_iter: {count}", text))


def resumed(folder, ranks, first, then):
    """The outcome of training that stops after an iteration (`first`: that iteration, the workers) and resumes with
    `then` workers.
    """
    (iteration, workers), last = first, int(re.search(r"max_iter: (\d+)", (folder / "solver.prototxt").read_text())[1])
    with_max_iter(folder, iteration)
    train(folder, "-ranks", ranks, "-workers", workers)
    with_max_iter(folder, last)
    return train(folder, "-ranks", ranks, "-workers", then, "-snapshot", f"snap_iter_{iteration}.solverstate")


def weights(path):
    """The float values of a .caffemodel, through its wire format (packed BlobProto.data)."""

    def varint(b, i):
        v = s = 0
        while True:
            c = b[i]
            i += 1
            v |= (c & 127) << s
            s += 7
            if c < 128:
                return v, i

    def fields(b):
        i = 0
        while i < len(b):
            key, i = varint(b, i)
            if key & 7 == 2:
                n, i = varint(b, i)
                yield key >> 3, b[i : i + n]
                i += n
            elif key & 7 == 0:
                _, i = varint(b, i)
            else:
                i += 4 if key & 7 == 5 else 8

    values = []
    for number, layer in fields(path.read_bytes()):
        for inner, blob in fields(layer) if number == 100 else ():
            for field, data in fields(blob) if inner == 7 else ():
                if field == 5:
                    values += struct.unpack(f"<{len(data) // 4}f", data)
    return values
