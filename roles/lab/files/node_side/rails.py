# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the two link tests share: the node's RDMA ports as /sys shows them, and real bytes over a rail."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import threading
from dataclasses import dataclass

INFINIBAND = "/sys/class/infiniband"
LINKS = "/usr/lib/gb10-lab/links.json"
# Enough whole packets that a path which drops big ones stalls, few enough that two CPUs carry it in no time.
PROBE_BYTES = 4 * 1024 * 1024
PROBE_LIMIT = 5.0


@dataclass
class Port:
    device: str
    netdev: str
    active: bool
    mtu: int
    gids: dict[int, str]
    types: dict[int, str]

    def gid_index(self) -> int:
        """The entry that both programs pick by themselves: RoCE v2 over IPv4, else the first."""
        return next((index for index in sorted(self.gids) if self.types[index] == "RoCE v2" and ipv4_of(self.gids[index])), 0)

    def active_mtu(self) -> int:
        return next((size for size in (4096, 2048, 1024, 512) if self.mtu - 96 >= size), 256)


def read(*parts: str) -> str:
    try:
        with open(os.path.join(*parts)) as handle:
            return handle.read().strip()
    except OSError:
        return ""


def ipv4_of(gid: str) -> str | None:
    return None if not gid else (str(mapped) if (mapped := ipaddress.IPv6Address(gid).ipv4_mapped) else None)


def read_port(device: str) -> Port:
    base = os.path.join(INFINIBAND, device)
    netdev = next(iter(os.listdir(os.path.join(base, "device", "net"))))
    port = os.path.join(base, "ports", "1")
    types = {int(name): read(port, "gid_attrs", "types", name) for name in os.listdir(os.path.join(port, "gid_attrs", "types"))}
    gids = {index: read(port, "gids", str(index)) for index in types}
    mtu = int(read(base, "device", "net", netdev, "mtu") or 1500)
    return Port(device, netdev, read(port, "state").endswith("ACTIVE"), mtu, gids, types)


def devices() -> list[str]:
    """In the order of the PCI bus, as libibverbs lists them."""
    names = os.listdir(INFINIBAND) if os.path.isdir(INFINIBAND) else []
    return sorted(names, key=lambda name: os.path.basename(os.path.realpath(os.path.join(INFINIBAND, name, "device"))))


def links() -> dict:
    with open(LINKS) as handle:
        return json.load(handle)


def on_rail(netdev: str) -> socket.socket:
    """A socket whose packets use this netdev whatever the routes say, as RDMA does."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, netdev.encode() + b"\0")
    made.settimeout(PROBE_LIMIT)
    return made


class Sink:
    """Takes bytes on a rail's own address and tells when all have come."""

    def __init__(self, netdev: str, address: str):
        self.listener = on_rail(netdev)
        self.listener.bind((address, 0))
        self.listener.listen(8)
        self.listener.settimeout(60)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _peer = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PROBE_LIMIT)
                left = PROBE_BYTES
                try:
                    while left > 0 and (chunk := connection.recv(min(left, 1 << 16))):
                        left -= len(chunk)
                    if left == 0:
                        connection.sendall(b"ok")
                except OSError:
                    continue


def push(netdev: str, address: str, peer: str, port: int) -> str | None:
    """Send the probe over a rail. None when it came; `unreachable` or `stalled` when not."""
    with on_rail(netdev) as connection:
        try:
            connection.bind((address, 0))
            connection.connect((peer, port))
        except OSError:
            return "unreachable"
        try:
            connection.sendall(bytes(PROBE_BYTES))
            return None if connection.recv(2) == b"ok" else "stalled"
        except OSError:
            return "stalled"
