# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's wires. All bridges and the switch's ends of all cables lie in one network namespace of the lab's own (the
switch room), joined to the host by a single interface: the host's firewall, its bridges and other labs see nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from . import host, layout

JUMBO = 9216
SWITCH_UPLINK = "uplink"
MANAGEMENT_BRIDGE = "management"
# Bridges drop LLDP frames unless told otherwise; a cable carries them.
LLDP_FORWARD_MASK = "0x4000"


def make_namespace(path: Path) -> None:
    """A network namespace that lives as long as this file is mounted. (`ip netns` would leave its folder mounted behind.)"""
    path.touch()
    host.run("unshare", f"--net={path}", "true")


def drop_namespace(path: Path) -> None:
    for point in host.mounts_below(path):
        host.run("umount", point)
    path.unlink(missing_ok=True)


def ip(namespace: Path | None, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    inside = ["nsenter", f"--net={namespace}"] if namespace else []
    return host.run(*inside, "ip", *words, check=check)


def batch(namespace: Path | None, lines: list[str]) -> None:
    """Many `ip` commands in one process."""
    inside = ["nsenter", f"--net={namespace}"] if namespace else []
    host.run(*inside, "ip", "-batch", "-", stdin="\n".join(lines) + "\n")


def addresses(namespace: Path) -> list[dict]:
    return json.loads(ip(namespace, "-json", "address", "show").stdout or "[]")


def ranges_in_use() -> list[str]:
    """Every IPv4 range that the host has a route or an address for, other labs' included."""
    routes = json.loads(ip(None, "-json", "-4", "route", "show", "table", "all").stdout or "[]")
    found = {route["dst"] for route in routes if route.get("dst") not in (None, "default")}
    return sorted(found)


def build_switch_room(namespace: Path, interface: str, network: str, gateway: str, cables: list[layout.Cable]) -> None:
    """The host's interface, the management bridge and a bridge for each cable and PCIe half."""
    make_namespace(namespace)
    batch(namespace, ["link set lo up", f"link add {MANAGEMENT_BRIDGE} type bridge", f"link set {MANAGEMENT_BRIDGE} up"])
    batch(None, [f"link add {interface} type veth peer name {SWITCH_UPLINK} netns {namespace}"])
    batch(namespace, [f"link set {SWITCH_UPLINK} master {MANAGEMENT_BRIDGE}", f"link set {SWITCH_UPLINK} up"])
    batch(None, [f"address add {gateway}/{network.split('/')[1]} dev {interface}", f"link set {interface} up"])
    lines = []
    for cable in cables:
        for half in ("P0", "P2"):
            bridge = f"{cable.name}-{half}"
            lines += [
                f"link add {bridge} mtu {JUMBO} type bridge group_fwd_mask {LLDP_FORWARD_MASK}",
                f"link set {bridge} up",
            ]
    batch(namespace, lines)


def remove_host_interface(interface: str) -> None:
    ip(None, "link", "delete", interface, check=False)


def plug_in(switch_room: Path, node: Path, lab: str, name: str, index: int, cables: list[layout.Cable], functions: tuple[layout.Function, ...]) -> None:
    """Give a node's fresh namespace its network cards: the management port, and one for each function of the ConnectX-7.

    A function without a cable is there too, with no carrier, as on a Spark with one cable.
    """
    # The kernel takes a dead node's namespace apart in its own time: its ports may still be plugged in here.
    for end in [f"n{index}-mgmt", *(layout.port_name(index, function) for function in functions)]:
        ip(switch_room, "link", "delete", end, check=False)
    lines = [
        f"link add n{index}-mgmt type veth peer name {layout.MANAGEMENT} address {layout.mac(lab, name, layout.MANAGEMENT)} netns {node}",
        f"link set n{index}-mgmt master {MANAGEMENT_BRIDGE} up",
    ]
    for function in functions:
        end = layout.port_name(index, function)
        lines.append(
            f"link add {end} mtu {JUMBO} type veth peer name {function.netdev} mtu 1500 address {layout.mac(lab, name, function.netdev)} netns {node}"
        )
        cable = cable_of(cables, name, function.cage)
        if cable:
            lines.append(f"link set {end} master {cable.name}-{end[-4:-2]}")
    batch(switch_room, lines)
    # NetworkManager, which DGX OS has, brings every port up; so they are up here whatever the renderer is.
    batch(node, [f"link set {netdev} up" for netdev in ["lo", layout.MANAGEMENT, *(function.netdev for function in functions)]])


def cable_of(cables: list[layout.Cable], node: str, cage: str) -> layout.Cable | None:
    return next((cable for cable in cables if (node, cage) in cable.ends), None)


def set_port(switch_room: Path, port: str, up: bool) -> None:
    ip(switch_room, "link", "set", port, "up" if up else "down", check=False)
