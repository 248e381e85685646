"""Small disks in a mount namespace of their own: one that can be full, a tmpfs, and one that can stand still."""

import contextlib
import pathlib

from holders import Holder, missing


class Disk:
    """point: its folder for those that command() runs; path: the same for this process, through /proc. (A program that
    resolves links itself would leave the namespace there.) OSError where there is none to be had.
    """

    def __init__(self, under, megabytes=32):
        self.make(under, "mount", f"mount -t tmpfs -o size={megabytes}m,mode=0777 none")

    def make(self, under, tool, mount):
        why = missing("unshare", "nsenter", tool)
        if why:
            raise OSError(why)
        self.point = pathlib.Path(under)
        self.point.mkdir(parents=True, exist_ok=True)
        self.holder = Holder("--mount", script=f"{mount} '{self.point}'")
        self.command = self.holder.command
        self.path = pathlib.Path(f"/proc/{self.holder.pid}/root{self.point}")
        self.filler = self.path / "filler"

    def fill(self, room=0):
        """Leaves so many bytes, rounded up to pages of 4096."""
        with open(self.filler, "ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while file.write(b"\xff" * size) == size:
                        pass
            size = max(0, file.seek(0, 2) - (room + 4095) // 4096 * 4096)
            file.truncate(size)

    def clear(self):
        for old in self.path.iterdir():
            old.unlink()

    def free(self):
        self.filler.unlink(missing_ok=True)

    def close(self):
        self.holder.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class StillDisk(Disk):
    """An ext4 in a file, which does not answer while it is frozen."""

    def __init__(self, under, image, megabytes=32):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
        self.make(under, "fsfreeze", f"mkfs.ext4 -q -F '{image}' >&2 && mount -o loop '{image}'")

    def clear(self):
        for old in self.path.iterdir():
            if old.is_file():
                old.unlink()

    def freeze(self):
        self.holder.call("fsfreeze", "--freeze", self.point)

    def thaw(self):
        with contextlib.suppress(OSError):
            self.holder.call("fsfreeze", "--unfreeze", self.point)

    def close(self):
        self.thaw()
        self.holder.close()
