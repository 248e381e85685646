"""Namespaces that last as long as a process of this harness reads its stdin: when the harness ends, however it ends,
the kernel removes them and all that is in them. No mount and no network of the machine itself is touched.
"""

import os
import shutil
import subprocess


class Holder:
    """kinds: what `unshare` calls them (--mount, --net). Whoever is not root is root within a user namespace."""

    def __init__(self, *kinds, script=""):
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = ["unshare", *user, *kinds, "sh", "-ec", f"{script}\necho made\nexec cat >/dev/null"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "made\n":
            why = self.process.communicate()[1].strip()
            raise OSError(f"{' '.join(kinds)}: {why}")
        self.pid = self.process.pid
        self.options = [*("--preserve-credentials --user".split() if user else []), *kinds]

    def command(self, folder, *arguments):
        """Runs it within them, in that folder; the process keeps its number."""
        enter = ["nsenter", "--target", str(self.pid), *self.options, "sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
        return [*enter, *map(str, arguments)]

    def close(self):
        self.process.communicate()  # closes stdin


def missing(*tools):
    """Why these tools cannot be used; "" when they are there."""
    gone = [t for t in tools if not shutil.which(t)]
    return f"there is no {', no '.join(gone)}" if gone else ""
