"""A small disk that can be full: a tmpfs in a mount namespace of its own."""

import contextlib
import pathlib

from holders import Holder, missing


class Disk:
    """point: its folder for those that command() runs; path: the same for this process, through /proc. (A program that
    resolves links itself would leave the namespace there.) OSError where there is none to be had.
    """

    def __init__(self, under, megabytes=32):
        why = missing("unshare", "nsenter", "mount")
        if why:
            raise OSError(why)
        self.point = pathlib.Path(under)
        self.point.mkdir(parents=True, exist_ok=True)
        self.holder = Holder("--mount", script=f"mount -t tmpfs -o size={megabytes}m,mode=0777 none '{self.point}'")
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
