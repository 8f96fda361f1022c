# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rails of a node: netplan text, names in the hosts file, and what a ping says. Text in, data out.

Private to this collection. Needs no Ansible.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

NETPLAN_PATH = "/etc/netplan/60-gb10-fabric.yaml"
HOSTS_BEGIN = "# BEGIN gb10.fleet rails"
HOSTS_END = "# END gb10.fleet rails"
# The file had no newline at its end: without this mark teardown could not give it back byte for byte.
HOSTS_BEGIN_JOINED = HOSTS_BEGIN + " (after a line without end)"
# IPv4 header 20 bytes, ICMP header 8 bytes.
PING_HEADER_BYTES = 28
# Documented by doc_fragments/rails.py.
RAILS_SPEC = {
    "rails": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "netdev": {"type": "str", "required": True},
            "device": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "prefix": {"type": "int", "required": True},
            "peers": {"type": "list", "elements": "dict", "default": []},
            "cage": {"type": "str"},
            "subnet": {"type": "str"},
        },
    },
    "mtu": {"type": "int", "default": 9000},
}

_RAIL_NAME = re.compile(r"^[A-Za-z0-9._-]{1,15}$")


class FabricError(Exception):
    """A sentence for the user: what, where and the cure."""


def check_rails(rails: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Refuse rails that cannot be written: a bad interface name, address or prefix, or an interface twice."""
    seen: t.Set[str] = set()
    for number, rail in enumerate(rails):
        netdev = str(rail.get("netdev"))
        if not _RAIL_NAME.match(netdev):
            raise FabricError(f"rails[{number}].netdev is {netdev}, which is no name of a network interface")
        if netdev in seen:
            raise FabricError(f"rails[{number}].netdev repeats {netdev}")
        seen.add(netdev)
        try:
            ipaddress.IPv4Interface(f"{rail.get('address')}/{rail.get('prefix')}")
        except ValueError as error:
            raise FabricError(f"rails[{number}] ({netdev}) needs an IPv4 address and a prefix: {error}") from error


def cidr(rail: t.Mapping[str, t.Any]) -> str:
    """The rail's address as address/prefix."""
    return f"{rail['address']}/{rail['prefix']}"


def netplan_text(rails: t.Sequence[t.Mapping[str, t.Any]], mtu: int, renderer: str) -> str:
    """The netplan file of the rails.

    No renderer is named, so that the host's own holds. `match` is written because an MTU without it may stay at 1500
    (canonical/cloud-init 3034). Only networkd knows ignore-carrier, which keeps the address while the peer is off.
    """
    lines = [
        "# Written by gb10.fleet, role fabric. Change spark_* in the inventory instead; teardown takes this file away.",
        "network:",
        "  version: 2",
        "  ethernets:",
    ]
    for rail in rails:
        lines += [
            f"    {rail['netdev']}:",
            f"      match: {{name: {rail['netdev']}}}",
            f"      addresses: [{cidr(rail)}]",
            f"      mtu: {mtu}",
            "      dhcp4: false",
            "      dhcp6: false",
            "      accept-ra: false",
            # The boot does not wait for a peer that is off.
            "      optional: true",
        ]
        if renderer == "NetworkManager":
            # Against another profile for the same interface, which would win or lose the boot by chance (NVIDIA/daqiri 77).
            lines += ["      networkmanager:", "        passthrough:", '          connection.autoconnect-priority: "100"']
        else:
            lines.append("      ignore-carrier: true")
    return "\n".join(lines) + "\n"


def split_hosts(text: str) -> t.Tuple[str, str]:
    """A hosts file without our block, as it was before us, and the block's lines."""
    start = re.search(rf"^{re.escape(HOSTS_BEGIN)}.*\n", text, re.MULTILINE)
    if not start:
        return text, ""
    end = re.compile(rf"^{re.escape(HOSTS_END)}(\n|\Z)", re.MULTILINE).search(text, start.end())
    if not end:
        raise FabricError(
            f"/etc/hosts has the line '{HOSTS_BEGIN}' and no '{HOSTS_END}' after it; remove what lies between by hand"
        )
    before, after = text[: start.start()], text[end.end() :]
    if start.group(0).rstrip("\n") == HOSTS_BEGIN_JOINED and not after:
        before = before[:-1]
    return before + after, text[start.end() : end.start()]


def hosts_text(text: str, hosts: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """The hosts file with one line for each address in a block at its end; without the block where there is none to write.

    A block that is right already stays where it is.
    """
    block = "".join(f"{host['address']}\t{' '.join(host['names'])}\n" for host in hosts)
    rest, present = split_hosts(text)
    if present == block:
        return text
    if not block:
        return rest
    joined = bool(rest) and not rest.endswith("\n")
    begin = HOSTS_BEGIN_JOINED if joined else HOSTS_BEGIN
    return f"{rest}{chr(10) if joined else ''}{begin}\n{block}{HOSTS_END}\n"


def wrong_of(rail: t.Mapping[str, t.Any], mtu: int, interface: t.Optional[t.Mapping[str, t.Any]]) -> t.List[str]:
    """What is not as planned on a rail's interface, each in a few words; empty when all is."""
    if interface is None:
        return ["the interface is not there"]
    wrong = []
    if interface["mtu"] != mtu:
        wrong.append(f"MTU is {interface['mtu']}, not {mtu}")
    if cidr(rail) not in interface["addresses"]:
        others = [address for address in interface["addresses"] if ":" not in address]
        wrong.append(f"address {cidr(rail)} is missing (there is {', '.join(others) or 'none'})")
    return wrong


def parse_ping(rc: int, out: str, err: str) -> str:
    """What a single ping came to: ok, too_big (a packet did not fit somewhere), silent, or the tool's own words."""
    text = f"{out}\n{err}"
    if rc == 0:
        return "ok"
    if re.search(r"message too long|Frag needed|Packet too big", text, re.IGNORECASE):
        return "too_big"
    if re.search(r"\b0 received", text):
        return "silent"
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return lines[-1] if lines else f"ping ended with {rc}"
