# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab consists of, worked out from its name, its nodes and its topology. Pure: touches nothing."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass

TOPOLOGIES = ("pair", "ring", "switch")
RENDERERS = ("networkd", "NetworkManager")
MANAGEMENT = "enP7s7"  # the Spark's RJ45 socket
MOST_NODES = 200
FIRST_NODE_ADDRESS = 11


class LayoutError(ValueError):
    """A lab that cannot be; the text says which variable to change and how."""


@dataclass(frozen=True)
class Function:
    """One of the four PCI functions of a Spark's ConnectX-7."""

    netdev: str
    device: str
    pci: str
    cage: str


# One ASIC, two cages, each reached over both PCIe halves.
FUNCTIONS = (
    Function("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0", "p0"),
    Function("enp1s0f1np1", "rocep1s0f1", "0000:01:00.1", "p1"),
    Function("enP2p1s0f0np0", "roceP2p1s0f0", "0002:01:00.0", "p0"),
    Function("enP2p1s0f1np1", "roceP2p1s0f1", "0002:01:00.1", "p1"),
)


def digest(*words: object) -> str:
    return hashlib.sha256("/".join(str(word) for word in words).encode()).hexdigest()


def check_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name):
        raise LayoutError(f"lab_name {name!r} must be 1 to 32 of a-z, 0-9 and -, and begin with a letter.")
    return name


def host_interface(name: str) -> str:
    """The lab's one interface on the host; at most 15 characters, whatever the lab is called."""
    return f"gb10lab-{digest(name)[:6]}"


def node_names(nodes: int | str | list[str]) -> list[str]:
    """`2` gives spark-a and spark-b; a list (or words with commas) is taken as it is."""
    if isinstance(nodes, str) and nodes.strip().isdigit():
        nodes = int(nodes)
    if isinstance(nodes, int):
        if not 1 <= nodes <= MOST_NODES:
            raise LayoutError(f"lab_nodes is {nodes} and must be 1 to {MOST_NODES}.")
        return [f"spark-{letters(index)}" for index in range(nodes)]
    names = [word.strip() for word in nodes.split(",")] if isinstance(nodes, str) else list(nodes)
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name):
            raise LayoutError(f"lab_nodes has {name!r}; a node's name must be 1 to 32 of a-z, 0-9 and -, and begin with a letter.")
    if len(set(names)) != len(names) or not 1 <= len(names) <= MOST_NODES:
        raise LayoutError(f"lab_nodes must name 1 to {MOST_NODES} different nodes; it names {', '.join(names) or 'none'}.")
    return names


def letters(index: int) -> str:
    """0 is a, 25 is z, 26 is aa."""
    word = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        word = chr(ord("a") + rest) + word
    return word


def clusters(topology: str, names: list[str]) -> dict[str, list[str]]:
    """The inventory's groups. Pairs are made in the order of the names; a ring and a switch hold all nodes."""
    if topology not in TOPOLOGIES:
        raise LayoutError(f"lab_topology is {topology!r} and must be one of {', '.join(TOPOLOGIES)}.")
    if topology == "ring" and len(names) < 3:
        raise LayoutError(f"lab_topology ring needs 3 nodes or more and lab_nodes gives {len(names)}.")
    if topology != "pair":
        return {topology: names}
    if len(names) <= 2:
        return {"pair": names}
    return {f"pair-{number + 1}": names[number * 2:number * 2 + 2] for number in range((len(names) + 1) // 2)}


@dataclass(frozen=True)
class Cable:
    """Ends that are joined: two for a direct cable, any number for a switch. An end is a node and its cage."""

    name: str
    ends: tuple[tuple[str, str], ...]
    direct: bool


def cables(topology: str, names: list[str]) -> list[Cable]:
    """A pair is joined at cage p0; a ring goes from p1 of each node to p0 of the next; a switch takes every p0."""
    if topology == "pair":
        groups = [group for group in clusters(topology, names).values() if len(group) == 2]
        return [Cable(f"c{number}", tuple((node, "p0") for node in group), True) for number, group in enumerate(groups)]
    if topology == "switch":
        return [Cable("c0", tuple((node, "p0") for node in names), False)]
    count = len(names)
    return [Cable(f"c{at}", ((names[at], "p1"), (names[(at + 1) % count], "p0")), True) for at in range(count)]


def management_range(name: str, taken: list[str]) -> ipaddress.IPv4Network:
    """A private /24 that depends on the lab's name alone, unless the host already uses it: then the next that is free."""
    used = [ipaddress.ip_network(text, strict=False) for text in taken]
    used = [network for network in used if network.version == 4 and network.prefixlen]
    for space in ("10.192.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15"):
        whole = ipaddress.IPv4Network(space)
        size = whole.num_addresses // 256
        first = int(digest(name)[:8], 16) % size
        for step in range(min(size, 512)):
            base = int(whole.network_address) + ((first + step) % size) * 256
            candidate = ipaddress.IPv4Network((base, 24))
            if not any(candidate.overlaps(network) for network in used):
                return candidate
    raise LayoutError("Every private IPv4 range has a route on this host; the lab needs one /24 that is free.")


def node_address(network: ipaddress.IPv4Network, index: int) -> str:
    return str(network.network_address + FIRST_NODE_ADDRESS + index)


def mac(lab: str, node: str, netdev: str) -> str:
    """A locally administered address that stays the same from run to run."""
    return "02:" + ":".join(digest(lab, node, netdev)[at:at + 2] for at in range(0, 10, 2))


def guid(address: str, marker: str = "0300") -> str:
    """A node GUID as a ConnectX-7 builds it from its MAC: its halves around a marker."""
    digits = address.replace(":", "")
    whole = digits[:6] + marker + digits[6:]
    return ":".join(whole[at:at + 4] for at in range(0, 16, 4))


def port_name(index: int, function: Function) -> str:
    """The switch's end of a rail: short, since node names may be long."""
    return f"n{index}-{'P2' if function.pci.startswith('0002') else 'P0'}{function.cage}"
