"""Namespaces that last as long as a process of this harness reads its stdin: when the harness ends, however it ends,
the kernel removes them and all that is in them. No mount and no network of the machine itself is touched.
"""

import os
import shutil
import subprocess


class Holder:
    """kinds: what `unshare` calls them (--mount, --net). Whoever is not root is root within a user namespace. within:
    of another holder, whose user namespace it then shares.
    """

    def __init__(self, *kinds, script="", within=None):
        user = [] if within or os.geteuid() == 0 else ["--user", "--map-root-user"]
        self.options = [*within.user] if within else ["--preserve-credentials", "--user"] if user else []
        self.user = list(self.options)
        self.options += kinds
        command = ["unshare", *user, *kinds, "sh", "-ec", f"{script}\necho made\nexec cat >/dev/null"]
        self.process = subprocess.Popen(
            within.command("/", *command) if within else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self.process.stdout.readline() != "made\n":
            why = self.process.communicate()[1].strip()
            raise OSError(f"{' '.join(kinds)}: {why}")
        self.pid = self.process.pid

    def command(self, folder, *arguments):
        """Runs it within them, in that folder; the process keeps its number."""
        enter = ["nsenter", "--target", str(self.pid), *self.options, "sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
        return [*enter, *map(str, arguments)]

    def call(self, *arguments):
        done = subprocess.run(self.command("/", *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")

    def close(self):
        self.process.communicate()  # closes stdin


def missing(*tools):
    """Why these tools cannot be used; "" when they are there."""
    gone = [t for t in tools if not shutil.which(t)]
    return f"there is no {', no '.join(gone)}" if gone else ""
