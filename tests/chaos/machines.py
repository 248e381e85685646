"""Machines on one network: each is a network namespace with a link to a router, which is one as well and loses, on
demand, what one machine sends to another. Nobody hears of it: connections do not end, new ones are not refused.
"""

import contextlib

from holders import Holder, missing

FORWARD = "ip link set lo up\necho 1 >/proc/sys/net/ipv4/ip_forward"


class Machines:
    """So many; OSError where there are none to be had. megabits: what each sends, and receives, in a second; 0: any."""

    def __init__(self, count, megabits=0):
        why = missing("unshare", "nsenter", "ip", *["tc"] * bool(megabits))
        if why:
            raise OSError(f"{why} (iproute2, util-linux)")
        self.ends = contextlib.ExitStack()
        with contextlib.ExitStack() as unfinished:
            unfinished.enter_context(self.ends)
            self.router = self.hold(Holder("--net", script=FORWARD))
            self.all = [self.machine(i, megabits) for i in range(count)]
            unfinished.pop_all()

    def hold(self, holder):
        self.ends.callback(holder.close)
        return holder

    def machine(self, i, megabits):
        one = self.hold(Holder("--net", script="ip link set lo up", within=self.router))
        end = f"end{i}"
        self.router.call("ip", "link", "add", end, "type", "veth", "peer", "name", "wire", "netns", one.pid)
        for holder, device, host in ((self.router, end, 1), (one, "wire", 2)):
            holder.call("ip", "addr", "add", f"10.77.{i}.{host}/24", "dev", device)
            holder.call("ip", "link", "set", device, "up")
            if megabits:
                bucket = ["rate", f"{megabits}mbit", "burst", "64kb", "latency", "50ms"]
                holder.call("tc", "qdisc", "add", "dev", device, "root", "tbf", *bucket)
        one.call("ip", "route", "add", "default", "via", f"10.77.{i}.1")
        return one

    def address(self, i):
        return f"10.77.{i}.2"

    def lose(self, sender, receiver, do="add"):
        """From now on what one sends to the other vanishes."""
        self.router.call("ip", "rule", do, "from", self.address(sender), "to", self.address(receiver), "blackhole")

    def heal(self, sender, receiver):
        self.lose(sender, receiver, "del")

    def cut_off(self, i, do="add"):
        """From all others, in both directions."""
        for other in range(len(self.all)):
            if other != i:
                self.lose(i, other, do), self.lose(other, i, do)

    def close(self):
        self.ends.close()
