"""Two network namespaces that stand for two hosts, with a slow link between them. Needs root.

The kernel's netem may be missing, so the link is two TUN devices and a process that carries their packets:
each is delivered DELAY_S after it was sent, at most RATE_BITS a second each way. The second host has its own
/dev/shm and /tmp/ray; all other files are the first one's, as on a shared file system.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOSTS = ("vlrl-a", "vlrl-b")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
TEST_HOSTS = f"TEST_HOSTS={','.join(ADDRESSES)}"
"""For `no_network`, which guards the programs of both."""
DELAY_S = 0.02
RATE_BITS = 1e9
MTU = 60_000  # few packets, which Python can carry at that rate
RAY_PORT = 6391
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x1, 0x1000, 0x40000000


def open_tun(host: str) -> int:
    """A file of the packets that a namespace sends through its device `link`."""
    with open(f"/run/netns/{host}") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns; run as root")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"link", IFF_TUN | IFF_NO_PI))
    return device


def carry(delay_s: float, rate_bits: float) -> None:
    """Carry packets both ways until killed; prints a line when the devices are there."""
    devices = [open_tun(host) for host in HOSTS]
    print("ready", flush=True)
    free_at, waiting = [0.0, 0.0], list[tuple[float, int, int, bytes]]()
    number = 0
    while True:
        until = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for source in select.select(devices, [], [], until)[0]:
            packet, target = os.read(source, 65_536), 1 - devices.index(source)
            free_at[target] = max(free_at[target], time.monotonic()) + 8 * len(packet) / rate_bits
            heapq.heappush(waiting, (free_at[target] + delay_s, number, target, packet))
            number += 1
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # the device is down: the packet is lost, as on a wire
                os.write(devices[target], packet)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@dataclass
class TwoHosts:
    """The two hosts while they are up.

    Attributes:
        address: of the Ray cluster, for ray.address.
        processes: that were started on the second host.
    """

    address: str = f"{ADDRESSES[0]}:{RAY_PORT}"
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def command(self, host: int, *command: str) -> list[str]:
        """A command as it is run on a host."""
        # Ray's head asks for a token if an earlier run of this user has made one, its other nodes send none.
        inside = ["ip", "netns", "exec", HOSTS[host], "env", "RAY_AUTH_MODE=disabled", TEST_HOSTS]
        if host == 1:
            own = "mount -t tmpfs tmpfs /dev/shm && mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray"
            inside += ["unshare", "-m", "sh", "-c", f'{own} && exec "$@"', "sh"]
        return [*inside, *command]

    def start_ray(self, python: str, *, num_cpus: float) -> None:
        """Start Ray's head on the first host and a node on the second, each with so many cores."""
        head = ("--head", f"--port={RAY_PORT}", "--include-dashboard=false")
        self.start_node(0, python, *head, num_cpus=num_cpus)
        self.start_node(1, python, num_cpus=num_cpus)

    def start_node(self, host: int, python: str, *options: str, num_cpus: float) -> None:
        """Start a Ray node on a host; without options one that joins the head."""
        ray = (str(Path(python).parent / "ray"), "start", "--disable-usage-stats", "--block")
        size = (f"--num-cpus={num_cpus:g}", f"--object-store-memory={200 * 2**20}")
        where = (f"--node-ip-address={ADDRESSES[host]}", *(options or (f"--address={self.address}",)))
        self.start(host, *ray, *size, *where)

    def start(self, host: int, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Start a program on a host; it is killed with all its children at the end."""
        process = subprocess.Popen(
            self.command(host, *command), text=True, start_new_session=True,
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def cut(self, host: int) -> None:
        """Take a host off the network; its programs go on."""
        run("ip", "-n", HOSTS[host], "link", "set", "dev", "link", "down")

    def close(self) -> None:
        """Kill everything that runs in the namespaces."""
        for host in HOSTS:
            pids = subprocess.run(
                ["ip", "netns", "pids", host], capture_output=True, text=True
            ).stdout.split()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        for process in self.processes:
            process.wait()


def remove() -> None:
    """Remove the namespaces, also those that a killed test left."""
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], capture_output=True)


@contextlib.contextmanager
def two_hosts(delay_s: float = DELAY_S, rate_bits: float = RATE_BITS) -> Iterator[TwoHosts]:
    """Two hosts for the length of a block."""
    remove()
    hosts = TwoHosts()
    code = f"from two_hosts import carry; carry({delay_s}, {rate_bits})"
    carrier: subprocess.Popen[str] | None = None
    try:
        for host in HOSTS:
            run("ip", "netns", "add", host)
        carrier = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
        )
        assert carrier.stdout is not None and carrier.stdout.readline() == "ready\n"
        for host, address in zip(HOSTS, ADDRESSES, strict=True):
            inside = ("ip", "-n", host)
            run(*inside, "link", "set", "lo", "up")
            run(*inside, "addr", "add", f"{address}/24", "dev", "link")
            run(*inside, "link", "set", "dev", "link", "mtu", str(MTU), "up")
        yield hosts
    finally:
        hosts.close()
        if carrier is not None:
            carrier.kill()
            carrier.wait()
        remove()


def wait_for(condition: Any, timeout_s: float, what: str) -> None:
    """Poll until a condition holds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {timeout_s:g} s"
        time.sleep(0.5)


def num_nodes(hosts: TwoHosts, python: str) -> int:
    """Living nodes of the cluster, asked on the first host."""
    code = (
        f"import ray; ray.init(address='{hosts.address}', log_to_driver=False, logging_level='ERROR'); "
        "print(sum(node['Alive'] for node in ray.nodes()))"
    )
    asked = subprocess.run(hosts.command(0, python, "-c", code), capture_output=True, text=True)
    return int(asked.stdout.split()[-1]) if asked.returncode == 0 else 0
