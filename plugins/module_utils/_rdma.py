# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA devices from sysfs, and what ibv_devinfo, ibstat and rdma link print about them: tree or text in, data out."""

from __future__ import annotations

import json
import os
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._files import (
    follow_links,
    is_directory,
    is_file,
    link_target_name,
    list_names,
    read_number,
    read_text,
)

# The same probe as that of the platform, so that it runs once.
PROBES: dict[str, tuple[str, ...]] = {}
ADDRESSES = ("ip", "-j", "address")
VERBS = ("ibv_devinfo",)
BASE = "sys/class/infiniband"
MELLANOX, NETWORK = "0x15b3", "0x02"
# What takes the card off the PCI bus without a cable, and the marker that it may.
HOTPLUG = "opt/nvidia/dgx-spark-mlnx-hotplug/mtk-hotplug-handler.sh"
HOTPLUG_RULE = "usr/lib/udev/rules.d/90-mtk-hotplug.rules"
HOTPLUG_MARKER = "etc/nvidia/cx7-hotplug-enabled"
LATE, NOT_RUN, MISSING = 124, 126, 127
# Of a port's fifty and more counters those that count errors, discards and timeouts.
_FAULT_COUNTER = re.compile(
    r"err(?:or|ors|s)?(?:_|$)|discard|dropped|timeout|retr(?:y|ans)|downed|recovery|overrun|out_of_|icrc|duplicate|integrity|nak", re.IGNORECASE
)

Note = t.Callable[[str, str, str], None]

# GRH 40, UDP 8, BTH 12, XRC 4, ATOMICETH 28 and ICRC 4 bytes: what iboe_get_mtu of the kernel takes off.
_ROCE_HEADER_BYTES = 96
_RDMA_MTUS = (4096, 2048, 1024, 512, 256)

_NODE_TYPES = {"CA": "InfiniBand", "RNIC": "iWARP", "usNIC": "usNIC", "usNIC UDP": "usNIC", "unspecified": "unspecified"}
_PORT_STATES = {"INITIALIZING": "INIT", "INITIALIZE": "INIT", "ACTIVEDEFER": "ACTIVE_DEFER"}
_PHYSICAL_STATES = {
    "sleep": "Sleep",
    "polling": "Polling",
    "disabled": "Disabled",
    "portconfigurationtraining": "PortConfigurationTraining",
    "linkup": "LinkUp",
    "linkerrorrecovery": "LinkErrorRecovery",
    "phytest": "Phy Test",
}
_PCI_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_RATE = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)\s*(?:Gb/sec\s*(?:\(([0-9]{1,4})X(?:\s+(\w+))?\))?)?")
_NUMBERED = re.compile(r"^(.*?)\s*\((-?\d+)\)$")
_GID = re.compile(r"^GID\[\s*([0-9]{1,9})\]$")


class Rate(t.NamedTuple):
    """A port's rate in Gb/s, its lanes and the name of its signalling."""

    gbps: float
    lanes: int | None
    signalling: str | None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def expected_active_mtu(netdev_mtu: int | None) -> int | None:
    """The RoCE MTU in bytes that the kernel derives from a network MTU: 1500 gives 1024, 4096 gives 2048, 9000 gives 4096."""
    if netdev_mtu is None:
        return None
    return next((mtu for mtu in _RDMA_MTUS if netdev_mtu - _ROCE_HEADER_BYTES >= mtu), None)


def parse_rate(text: str | None) -> Rate | None:
    """Reads '200 Gb/sec (4X HDR)' of sysfs, '800 Gb/sec (4X XDR)' or ibstat's bare '2.5'."""
    found = _RATE.search(text or "")
    if not found:
        return None
    return Rate(float(found.group(1)), int(found.group(2)) if found.group(2) else None, found.group(3))


def _port_state(text: str | None) -> str | None:
    word = (text or "").split(":")[-1].strip().upper()
    word = word[len("PORT_"):] if word.startswith("PORT_") else word
    word = _PORT_STATES.get(word, word)
    return word if word in ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER") else None


def _physical_state(text: str | None) -> str | None:
    word = (text or "").split(":")[-1].strip().replace("_", "").replace(" ", "").lower()
    return _PHYSICAL_STATES.get(word)


def _is_zero(gid: str) -> bool:
    return not gid.strip("0:")


def gid_ipv4(gid: str) -> str | None:
    """The IPv4 address of an IPv4-mapped GID, in the long form of sysfs or the short one of ibv_devinfo."""
    short = re.match(r"^::ffff:(\d+\.\d+\.\d+\.\d+)$", gid)
    if short:
        return short.group(1)
    long = re.match(r"^(?:0000:){5}ffff:([0-9a-f]{4}):([0-9a-f]{4})$", gid)
    if not long:
        return None
    number = int(long.group(1) + long.group(2), 16)
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _gid_type(text: str | None, link_layer: str | None) -> str | None:
    if text == "IB/RoCE v1":
        return "RoCE v1" if link_layer == "Ethernet" else "InfiniBand"
    return text or None


def _read_gids(port: str, link_layer: str | None) -> list[dict[str, t.Any]]:
    gids = []
    for name in sorted((name for name in list_names(port, "gids") if _is_number(name)), key=int):
        gid = read_text(port, "gids", name)
        # Most of the table is empty, and a gap may come before the last entry.
        if not gid or _is_zero(gid):
            continue
        gids.append(
            {
                "index": int(name),
                "gid": gid,
                "type": _gid_type(read_text(port, "gid_attrs", "types", name), link_layer),
                "netdev": read_text(port, "gid_attrs", "ndevs", name) or None,
                "ipv4": gid_ipv4(gid),
            }
        )
    return gids


def _pci_address(root: str, device: str) -> str | None:
    for line in (read_text(device, "device", "uevent") or "").splitlines():
        if line.startswith("PCI_SLOT_NAME="):
            return line.partition("=")[2].strip()
    name = follow_links(root, os.path.relpath(os.path.join(device, "device"), root)).rpartition("/")[2]
    return name if _PCI_ADDRESS.match(name) else None


def _port_netdev(root: str, device: str, port: int, gids: list[dict[str, t.Any]]) -> str | None:
    names = list_names(device, "device", "net")
    if len(names) == 1:
        return names[0]
    # A function with several netdevs has one for each port, or the representors of its virtual functions; a software
    # device has none. The GID table names the port's own, which may have been moved out of this network namespace.
    visible = names or list_names(root, "sys/class/net")
    named = [gid["netdev"] for gid in gids if gid["netdev"] in visible]
    if named or not names:
        return named[0] if named else None
    own = [name for name in names if read_number(device, "device", "net", name, "dev_port") == port - 1]
    return (own or names)[0]


def _transport(device: str, link_layer: str | None) -> str | None:
    kind = (read_text(device, "node_type") or "").partition(":")[2].strip()
    transport = _NODE_TYPES.get(kind)
    return "RoCE" if transport == "InfiniBand" and link_layer == "Ethernet" else transport


def _link_rate(rate: Rate | None, link_layer: str | None, speed: int | None) -> float | None:
    # For an Ethernet speed that a driver does not tell, the kernel prints single data rate (2.5): the netdev knows better.
    if rate is not None and rate.gbps > 10 or link_layer != "Ethernet" or not _positive(speed):
        return rate.gbps if rate else None
    return speed / 1000 if rate and speed else None


def port_reason(state: str | None, physical_state: str | None, link_layer: str | None, netdev: str | None) -> str | None:
    """Why a port is not active, in a sentence, or None for an active one."""
    if state == "ACTIVE":
        return None
    if state is None:
        return "The device tells no port state."
    if physical_state == "LinkUp" and link_layer == "InfiniBand":
        return (
            "The link is trained but no subnet manager has brought the port up, or the port has the wrong link type; "
            "the cable is not the cause."
        )
    if physical_state == "LinkUp":
        return f"The link is trained but the port is {state}: bring its network interface{' ' + netdev if netdev else ''} up."
    if physical_state == "Polling":
        return "The port looks for a signal: the cable is not in at both ends, or the other end is off."
    return "The port is down: no cable is in, or its network interface is down."


def read_counters(port: str) -> dict[str, int]:
    """A port's counters of errors, discards and timeouts, by name; those that the driver does not keep are missing."""
    counters = {}
    for folder in ("counters", "hw_counters"):
        for name in list_names(port, folder):
            value = read_number(port, folder, name) if _FAULT_COUNTER.search(name) else None
            if value is not None:
                counters[name] = value
    return counters


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None


def _carrier(number: int | None) -> bool | None:
    return None if number is None else number == 1


def read_devices(root: str) -> list[dict[str, t.Any]]:
    """Every port of every RDMA device in /sys/class/infiniband under `root`, in the order of PCI addresses.

    Reads files only. Active and maximum MTU stay None: no file of sysfs has them (see merge_verbs).
    """
    base = os.path.join(root, BASE)
    devices = []
    for name in list_names(base):
        device = os.path.join(base, name)
        pci_address = _pci_address(root, device)
        ports = [int(port) for port in list_names(device, "ports") if _is_number(port)] or [1]
        for number in ports:
            port = os.path.join(device, "ports", str(number))
            link_layer = read_text(port, "link_layer") or None
            gids = _read_gids(port, link_layer)
            netdev = _port_netdev(root, device, number, gids)
            net = os.path.join(root, "sys/class/net", netdev) if netdev else None
            state = _port_state(read_text(port, "state"))
            physical_state = _physical_state(read_text(port, "phys_state"))
            transport = _transport(device, link_layer)
            netdev_mtu = read_number(net, "mtu") if net else None
            speed = read_number(net, "speed") if net else None
            rate = parse_rate(read_text(port, "rate")) if state == "ACTIVE" or physical_state == "LinkUp" else None
            lanes = rate.lanes if rate else None
            devices.append(
                {
                    "name": name,
                    "port": number,
                    "netdev": netdev,
                    "state": state,
                    "phys_state": physical_state,
                    "reason": port_reason(state, physical_state, link_layer, netdev),
                    "rate_gbps": _link_rate(rate, link_layer, speed),
                    "active_width": f"{lanes}X" if lanes else None,
                    "active_speed": f"{rate.gbps / lanes:.1f} Gbps" if rate and lanes else None,
                    "link_layer": link_layer,
                    "transport": transport,
                    "netdev_state": (read_text(net, "operstate") or None) if net else None,
                    "carrier": _carrier(read_number(net, "carrier")) if net else None,
                    "link_speed_mbps": _positive(speed),
                    "addresses": [],
                    "netdev_mtu": netdev_mtu,
                    "active_mtu": None,
                    "max_mtu": None,
                    "expected_active_mtu": expected_active_mtu(netdev_mtu) if transport == "RoCE" else None,
                    "gids": gids,
                    "firmware": read_text(device, "fw_ver") or None,
                    "psid": read_text(device, "board_id") or None,
                    "node_guid": read_text(device, "node_guid") or None,
                    "sys_image_guid": read_text(device, "sys_image_guid") or None,
                    "phys_port_name": (read_text(device, "device/net", netdev, "phys_port_name") or None) if netdev else None,
                    "cage": None,
                    "twin": None,
                    "pci_address": pci_address,
                    "is_virtual_function": link_target_name(device, "device", "physfn") is not None,
                    "pcie": {
                        "speed": _pcie_speed(device, "current_link_speed"),
                        "width": _positive(read_number(device, "device", "current_link_width")),
                        "max_speed": _pcie_speed(device, "max_link_speed"),
                        "max_width": _positive(read_number(device, "device", "max_link_width")),
                    },
                    "counters": read_counters(port),
                }
            )
    devices.sort(key=lambda entry: (entry["pci_address"] or "~", entry["name"], entry["port"]))
    return devices


def _pcie_speed(device: str, name: str) -> str | None:
    found = re.match(r"[\d.]+ GT/s", read_text(device, "device", name) or "")
    return found.group(0) if found else None


def find_cages(devices: list[dict[str, t.Any]]) -> dict[str, list[str]]:
    """Names of the devices behind each cage, and sets each device's `cage` and `twin`.

    The functions of one adapter with the same physical port name share a cage. The name is the netdev's phys_port_name;
    where the driver gives none, the PCI function digit of an adapter that has a board id stands for it. Ports of a second
    adapter get the adapter's first PCI address behind their name, so that two adapters never share a cage.
    """
    cages: dict[str, list[str]] = {}
    adapters: list[str | None] = []
    first_address: dict[str | None, str | None] = {}
    for device in devices:
        if device["is_virtual_function"]:
            continue
        label = device["phys_port_name"] if re.match(r"^p\d+$", device["phys_port_name"] or "") else None
        if label is None and device["psid"] and device["pci_address"]:
            label = f"p{device['pci_address'][-1]}"
        if label is None:
            continue
        adapter = device["sys_image_guid"]
        if adapter not in adapters:
            adapters.append(adapter)
            first_address[adapter] = device["pci_address"]
        cage = label if adapters[0] == adapter else f"{label}@{first_address[adapter]}"
        device["cage"] = cage
        cages.setdefault(cage, []).append(device["name"])
    for device in devices:
        others = [name for name in cages.get(device["cage"] or "", []) if name != device["name"]]
        device["twin"] = others[0] if others else None
    return cages


def merge_verbs(devices: list[dict[str, t.Any]], verbs: list[dict[str, t.Any]]) -> None:
    """Fills active and maximum MTU of the sysfs devices from parse_ibv_devinfo."""
    ports = {(device["name"], port["port"]): port for device in verbs for port in device["ports"]}
    for device in devices:
        port = ports.get((device["name"], device["port"]))
        if port:
            device["active_mtu"] = port["active_mtu"]
            device["max_mtu"] = port["max_mtu"]


def _unnumbered(value: str) -> str:
    found = _NUMBERED.match(value)
    return found.group(1) if found else value


def _leading_number(value: str | None) -> int | None:
    found = re.match(r"[0-9]{1,9}(?![0-9])", value or "")
    return int(found.group(0)) if found else None


def parse_ibv_devinfo(text: str) -> list[dict[str, t.Any]]:
    """Devices and ports that ibv_devinfo prints, with or without -v; lines that are no `key: value` are skipped.

    `transport` follows the link layer: ibv_devinfo prints 'InfiniBand (0)' for RoCE too.
    """
    devices: list[dict[str, t.Any]] = []
    raw: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        value = value.strip()
        if not colon:
            continue
        if key == "hca_id":
            raw = {}
            devices.append({"name": value, "raw": raw, "ports": []})
        elif key == "port" and devices and _is_number(value):
            raw = {}
            devices[-1]["ports"].append({"port": int(value), "raw": raw, "gids": []})
        elif devices and devices[-1]["ports"] and _GID.match(key):
            gid, comma, kind = value.partition(",")
            devices[-1]["ports"][-1]["gids"].append(
                {
                    "index": int(t.cast("re.Match[str]", _GID.match(key)).group(1)),
                    "gid": gid.strip(),
                    "type": kind.strip() or None,
                    "ipv4": gid_ipv4(gid.strip()),
                }
            )
        elif devices:
            raw.setdefault(key, value)
    for device in devices:
        raw = device.pop("raw")
        transport = _unnumbered(raw.get("transport", "")) or None
        for port in device["ports"]:
            _finish_port(port)
            if transport == "InfiniBand" and port["link_layer"] == "Ethernet":
                transport = "RoCE"
        device.update(
            {
                "transport": transport,
                "firmware": raw.get("fw_ver"),
                "node_guid": raw.get("node_guid"),
                "sys_image_guid": raw.get("sys_image_guid"),
                "psid": raw.get("board_id"),
            }
        )
    return devices


def _finish_port(port: dict[str, t.Any]) -> None:
    raw = port.pop("raw")
    lanes = _leading_number(raw.get("active_width"))
    speed = parse_rate(raw.get("active_speed"))
    port.update(
        {
            "state": _port_state(_unnumbered(raw.get("state", ""))),
            "phys_state": _physical_state(_unnumbered(raw.get("phys_state", ""))),
            "active_mtu": _leading_number(raw.get("active_mtu")),
            "max_mtu": _leading_number(raw.get("max_mtu")),
            "link_layer": raw.get("link_layer") or None,
            "rate_gbps": lanes * speed.gbps if lanes and speed else None,
        }
    )


def parse_ibstat(text: str) -> list[dict[str, t.Any]]:
    """Adapters and ports that ibstat prints."""
    adapters: list[dict[str, t.Any]] = []
    for line in text.splitlines():
        stripped = line.strip()
        started = re.match(r"^CA '(.+)'$", stripped)
        port = re.match(r"^Port ([0-9]{1,9}):$", stripped)
        key, colon, value = stripped.partition(":")
        value = value.strip()
        if started:
            adapters.append({"name": started.group(1), "type": None, "firmware": None, "sys_image_guid": None, "ports": []})
        elif not adapters or not colon:
            continue
        elif port:
            adapters[-1]["ports"].append({"port": int(port.group(1)), **dict.fromkeys(_IBSTAT_PORT.values())})
        elif adapters[-1]["ports"] and key in _IBSTAT_PORT:
            adapters[-1]["ports"][-1][_IBSTAT_PORT[key]] = _ibstat_value(key, value)
        elif not adapters[-1]["ports"] and key in _IBSTAT_ADAPTER:
            adapters[-1][_IBSTAT_ADAPTER[key]] = value
    for adapter in adapters:
        for entry in adapter["ports"]:
            entry["reason"] = port_reason(entry["state"], entry["phys_state"], entry["link_layer"], None)
    return adapters


_IBSTAT_ADAPTER = {"CA type": "type", "Firmware version": "firmware", "System image GUID": "sys_image_guid"}
_IBSTAT_PORT = {
    "State": "state",
    "Physical state": "phys_state",
    "Rate": "rate_gbps",
    "Base lid": "base_lid",
    "Link layer": "link_layer",
}


def _ibstat_value(key: str, value: str) -> t.Any:
    if key == "State":
        return _port_state(value)
    if key == "Physical state":
        return _physical_state(value)
    if key == "Rate":
        rate = parse_rate(value)
        return rate.gbps if rate else None
    if key == "Base lid":
        return _leading_number(value)
    return value or None


def parse_rdma_link(text: str) -> list[dict[str, t.Any]]:
    """Ports that `rdma link` prints, by key and not by column: InfiniBand ports have more words, a moved netdev fewer."""
    links = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2 or words[0] != "link":
            continue
        name, slash, port = words[1].partition("/")
        pairs = dict(zip(words[2::2], words[3::2]))
        links.append(
            {
                "name": name,
                "port": int(port) if _is_number(port) else None,
                "state": _port_state(pairs.get("state")),
                "phys_state": _physical_state(pairs.get("physical_state")),
                "netdev": pairs.get("netdev"),
            }
        )
    return links


def count_functions(root: str) -> tuple[int | None, int]:
    """Network functions of NVIDIA's cards on the PCI bus, None without such a bus, and how many of them are virtual."""
    base = os.path.join(root, "sys/bus/pci/devices")
    if not is_directory(base):
        return None, 0
    physical = virtual = 0
    for name in list_names(base):
        if read_text(base, name, "vendor") == MELLANOX and (read_text(base, name, "class") or "").startswith(NETWORK):
            if link_target_name(base, name, "physfn"):
                virtual += 1
            else:
                physical += 1
    return physical, virtual


def merge_addresses(devices: list[dict[str, t.Any]], text: str) -> None:
    """Fills the addresses of the devices' network interfaces from `ip -j address`. Raises ValueError for any other text."""
    try:
        links = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(links, list):
        raise ValueError("not a list of interfaces")
    found: dict[t.Any, list[str]] = {}
    for link in links:
        entries = link.get("addr_info") if isinstance(link, dict) and isinstance(link.get("ifname"), str) else None
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and "local" in entry and "prefixlen" in entry:
                found.setdefault(link["ifname"], []).append(f"{entry['local']}/{entry['prefixlen']}")
    for device in devices:
        device["addresses"] = found.get(device["netdev"], [])


def more_probes(root: str) -> dict[str, tuple[str, ...]]:
    """Tools that have something to say where there is an RDMA device."""
    return {"addresses": ADDRESSES, "verbs": VERBS} if list_names(root, BASE) else {}


def read_rdma(root: str, answers: t.Mapping[str, t.Any], note: Note) -> dict[str, t.Any]:
    """Facts of the subset rdma.

    Args:
        root: root directory of the node.
        answers: answers to more_probes().
        note: told what was not understood.
    """
    devices = read_devices(root)
    for device in devices:
        if device["state"] is None and device["transport"] in ("RoCE", "InfiniBand"):
            state = read_text(root, BASE, device["name"], "ports", str(device["port"]), "state")
            if state:
                note(f"/{BASE}/{device['name']}/ports/{device['port']}/state", "not_understood", state)
    addresses, verbs = answers.get("addresses"), answers.get("verbs")
    if devices and addresses is not None and addresses.status == 0:
        try:
            merge_addresses(devices, addresses.output)
        except ValueError:
            note("ip -j address", "not_understood", addresses.output)
    if devices and verbs is not None and verbs.status not in (LATE, NOT_RUN, MISSING):
        _read_verbs(devices, verbs, note)
    functions, virtual = count_functions(root)
    return {
        **summarize(devices),
        "nic_functions": functions,
        "virtual_functions": virtual,
        "hotplug": {
            "installed": is_file(root, HOTPLUG) or is_file(root, HOTPLUG_RULE),
            "enabled": is_file(root, HOTPLUG_MARKER),
        },
    }


def _read_verbs(devices: list[dict[str, t.Any]], answer: t.Any, note: Note) -> None:
    verbs = parse_ibv_devinfo(answer.output)
    merge_verbs(devices, verbs)
    if answer.status != 0:
        said = " ".join((answer.error or answer.output).split()) or f"It ended with {answer.status}."
        note("ibv_devinfo", "denied" if "permission denied" in said.lower() else "failed", said)
    elif not verbs:
        note("ibv_devinfo", "not_understood", answer.output)
    else:
        missing = [
            f"{device['name']} port {device['port']}" for device in devices if device["active_mtu"] is None and device["transport"] in ("RoCE", "InfiniBand")
        ]
        if missing:
            note("ibv_devinfo", "not_understood", f"It tells no active_mtu of {', '.join(missing)}.")


def summarize(devices: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """The RDMA facts: no device at all is a state of its own, as a Spark without a cable takes its card off the bus."""
    cages = find_cages(devices)
    if devices:
        return {"devices": devices, "cages": cages, "state": "ok", "reason": None}
    return {
        "devices": [],
        "cages": {},
        "state": "no_device",
        "reason": "There is no RDMA device. A Spark takes its network card off the PCI bus when it boots without a cable: "
        "put the cable in at both ends and reboot the node.",
    }
