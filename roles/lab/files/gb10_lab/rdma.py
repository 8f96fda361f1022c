# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/sys/class/infiniband as the kernel derives it from a node's netdevs. Pure: link data in, file texts out."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

# GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4: what RoCE takes off an Ethernet frame (the kernel's iboe_get_mtu).
ROCE_HEADERS = 96
TABLE_LENGTH = 256
EMPTY_GID = ":".join(["0000"] * 8)
FOREIGN_GIDS = [f"fd00:{number:04x}:0000:0000:0000:0000:0000:0001" for number in range(1, 65)]
TYPES = ("IB/RoCE v1", "RoCE v2")
# The files that mlx5 has in a port's counters and hw_counters.
COUNTERS = (
    "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery", "local_link_integrity_errors",
    "multicast_rcv_packets", "multicast_xmit_packets", "port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors", "port_rcv_packets",
    "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_data",
    "port_xmit_discards", "port_xmit_packets", "port_xmit_wait", "symbol_error", "unicast_rcv_packets", "unicast_xmit_packets",
)
HARDWARE_COUNTERS = (
    "duplicate_request", "implied_nak_seq_err", "lifespan", "local_ack_timeout_err", "np_cnp_sent", "np_ecn_marked_roce_packets",
    "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error", "req_cqe_flush_error", "req_remote_access_errors",
    "req_remote_invalid_request", "resp_cqe_error", "resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors",
    "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans",
    "rp_cnp_handled", "rp_cnp_ignored", "rx_atomic_requests", "rx_icrc_encapsulated", "rx_read_requests", "rx_write_requests",
)
# What sysfs calls a rate: two lanes of the card's socket carry 200 Gb/s.
RATES = {10: "1X QDR", 25: "1X EDR", 40: "4X QDR", 50: "1X HDR", 100: "2X HDR", 200: "2X NDR", 400: "4X NDR"}


@dataclass
class Link:
    """What the kernel says of one netdev."""

    netdev: str
    mac: str
    mtu: int
    carrier: bool
    up: bool
    addresses: list[str] = field(default_factory=list)


def active_mtu(netdev_mtu: int) -> int:
    room = netdev_mtu - ROCE_HEADERS
    return next((size for size in (4096, 2048, 1024, 512, 256) if room >= size), 256)


def default_gid(mac: str) -> str:
    """The link-local GID of a port: EUI-64 of its MAC; there even when the netdev has no IPv6 address."""
    octets = [int(part, 16) for part in mac.split(":")]
    octets[0] ^= 2
    host = octets[:3] + [0xFF, 0xFE] + octets[3:]
    return "fe80:0000:0000:0000:" + ":".join(f"{host[at]:02x}{host[at + 1]:02x}" for at in range(0, 8, 2))


def address_gid(address: str) -> str:
    packed = ipaddress.ip_address(address).packed
    if len(packed) == 4:
        packed = b"\0" * 10 + b"\xff\xff" + packed
    # Not `exploded`: since Python 3.13 that writes the last four bytes of a mapped address as IPv4.
    return ":".join(packed[at:at + 2].hex() for at in range(0, 16, 2))


def gid_table(link: Link, before: list[str | None], shift: int = 0, of_addresses: bool = True) -> list[str | None]:
    """The table's GIDs two slots each (v1, v2): an address keeps its slot, one that goes leaves a hole, one that comes takes the first.

    `shift` puts that many foreign addresses before the node's own, as an extra IPv6 address would. Without `of_addresses` the
    driver has missed that the interface has addresses.
    """
    foreign = FOREIGN_GIDS[:shift]
    if [gid for gid in before if gid in FOREIGN_GIDS] != foreign:
        before = []
    wanted = [default_gid(link.mac), *foreign]
    for address in link.addresses if of_addresses else ():
        gid = address_gid(address)
        if gid not in wanted:
            wanted.append(gid)
    table = [gid if gid in wanted else None for gid in before]
    for gid in wanted:
        if gid not in table:
            if None in table:
                table[table.index(None)] = gid
            else:
                table.append(gid)
    return table


def port_files(link: Link, table: list[str | None], link_gbps: int) -> dict[str, str]:
    """The files of ports/1."""
    active = link.up and link.carrier
    files = {
        "state": "4: ACTIVE\n" if active else "1: DOWN\n",
        "phys_state": "5: LinkUp\n" if active else "3: Disabled\n",
        # A port without a partner shows the slowest rate that the card can do.
        "rate": f"{link_gbps} Gb/sec ({RATES.get(link_gbps, '2X NDR')})\n" if active else "40 Gb/sec (4X QDR)\n",
        "link_layer": "Ethernet\n",
        "lid": "0x0\n",
        "lid_mask_count": "0\n",
        "sm_lid": "0x0\n",
        "sm_sl": "0\n",
        "cap_mask": "0x00010000\n",
    }
    for index in range(TABLE_LENGTH):
        slot, version = divmod(index, 2)
        gid = table[slot] if slot < len(table) else None
        files[f"gids/{index}"] = f"{gid or EMPTY_GID}\n"
        # The kernel answers EINVAL for the attributes of an empty slot; here the file is absent: unreadable both ways.
        if gid:
            files[f"gid_attrs/types/{index}"] = f"{TYPES[version]}\n"
            files[f"gid_attrs/ndevs/{index}"] = f"{link.netdev}\n"
    return files


def device_files(link: Link, table: list[str | None], *, node_guid: str, system_guid: str, firmware: str, psid: str, node: str,
                 link_gbps: int = 200, counters: dict[str, int] | None = None, link_layer: str = "Ethernet") -> dict[str, str]:
    """One device's folder, file by file."""
    files = {
        "fw_ver": f"{firmware}\n",
        "board_id": f"{psid}\n",
        "hca_type": "MT4129\n",
        "hw_rev": "0\n",
        "node_type": "1: CA\n",
        "node_guid": f"{node_guid}\n",
        "sys_image_guid": f"{system_guid}\n",
        "node_desc": f"{node} {link.netdev}\n",
    }
    files.update({f"ports/1/{name}": text for name, text in {**port_files(link, table, link_gbps), **counter_files(counters or {})}.items()})
    if link_layer == "InfiniBand":
        files.update({"ports/1/link_layer": "InfiniBand\n", "ports/1/state": "1: DOWN\n", "ports/1/phys_state": "5: LinkUp\n"})
    return files


def counter_files(counters: dict[str, int]) -> dict[str, str]:
    """Every counter of a port: 0, except those given. (The lifespan is a setting among them.)"""
    files = {f"counters/{name}": f"{counters.get(name, 0)}\n" for name in COUNTERS}
    files.update({f"hw_counters/{name}": f"{counters.get(name, 10 if name == 'lifespan' else 0)}\n" for name in HARDWARE_COUNTERS})
    return files


def speed_file(link: Link, link_gbps: int) -> str:
    """/sys/class/net/*/speed, in Mb/s: -1 without carrier."""
    return f"{link_gbps * 1000}\n" if link.up and link.carrier else "-1\n"


def links_from_ip(entries: list[dict]) -> dict[str, Link]:
    """`ip -json address show` as links by name. Tentative addresses have no GID yet."""
    links = {}
    for entry in entries:
        flags = entry.get("flags", [])
        addresses = [
            address["local"] for address in entry.get("addr_info", [])
            if "local" in address and address["family"] in ("inet", "inet6") and not address.get("tentative")
        ]
        links[entry["ifname"]] = Link(
            netdev=entry["ifname"], mac=entry.get("address", ""), mtu=entry["mtu"], carrier="LOWER_UP" in flags, up="UP" in flags,
            addresses=addresses,
        )
    return links
