# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What machine and system a node is: DMI, release files, /proc, interfaces. Tree root or text in, data out."""

from __future__ import annotations

import json
import os
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._files import link_target_name, list_names, read_number, read_text

_OEMS = (
    ("nvidia", "nvidia"),
    ("asus", "asus"),
    ("gigabyte", "gigabyte"),
    ("micro-star", "msi"),
    ("ms-c931", "msi"),
    ("msi", "msi"),
    ("lenovo", "lenovo"),
    ("dell", "dell"),
    ("hp", "hp"),
    ("acer", "acer"),
)
_GPU_VENDOR_AND_DEVICE = ("0x10de", "0x2e12")
_RENDERERS = ("networkd", "NetworkManager")


def parse_assignments(text: str | None) -> dict[str, list[str]]:
    """Every value of each KEY=VALUE line, in order, quoted or not; other lines are skipped."""
    values: dict[str, list[str]] = {}
    for line in (text or "").splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and re.match(r"^[A-Za-z_][A-Za-z0-9_]*$", key):
            value = value.strip()
            if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            values.setdefault(key, []).append(value)
    return values


def _last(values: dict[str, list[str]], key: str) -> str | None:
    return values[key][-1] or None if key in values else None


def read_dmi(root: str) -> dict[str, str | None]:
    """Vendor, product and BIOS of the files that a normal user may read."""
    base = os.path.join(root, "sys/class/dmi/id")
    return {
        "vendor": read_text(base, "sys_vendor") or None,
        "product": read_text(base, "product_name") or None,
        "product_family": read_text(base, "product_family") or None,
        "board": read_text(base, "board_name") or None,
        "bios_version": read_text(base, "bios_version") or None,
        "bios_date": read_text(base, "bios_date") or None,
    }


def oem_name(vendor: str | None) -> str | None:
    """Short name of who built the Spark, from the DMI vendor."""
    lower = (vendor or "").lower()
    return next((name for start, name in _OEMS if lower.startswith(start)), None)


def read_dgx_release(root: str) -> dict[str, str | None]:
    """/etc/dgx-release without its serial number. The file gets a new DGX_OTA_VERSION line with each update: the last counts."""
    values = parse_assignments(read_text(root, "etc/dgx-release"))
    return {
        "name": _last(values, "DGX_NAME"),
        "pretty_name": _last(values, "DGX_PRETTY_NAME"),
        "platform": _last(values, "DGX_PLATFORM"),
        "ota_version": _last(values, "DGX_OTA_VERSION"),
        "build_version": _last(values, "DGX_SWBUILD_VERSION"),
    }


def read_os_release(root: str) -> dict[str, str | None]:
    """ID, VERSION_ID and PRETTY_NAME of /etc/os-release."""
    values = parse_assignments(read_text(root, "etc/os-release"))
    return {key: _last(values, key.upper()) for key in ("id", "version_id", "pretty_name")}


def read_memory(root: str) -> dict[str, int | None]:
    """Total and available memory and total swap of /proc/meminfo, in bytes."""
    values: dict[str, int] = {}
    for line in (read_text(root, "proc/meminfo") or "").splitlines():
        found = re.match(r"^(\w+):\s+(\d+) kB$", line)
        if found:
            values[found.group(1)] = int(found.group(2)) * 1024
    return {
        "memory_total_bytes": values.get("MemTotal"),
        "memory_available_bytes": values.get("MemAvailable"),
        "swap_total_bytes": values.get("SwapTotal"),
    }


def has_gb10_on_pci(root: str) -> bool:
    """True when the PCI bus carries the GB10's GPU."""
    base = os.path.join(root, "sys/bus/pci/devices")
    return any(
        (read_text(base, name, "vendor"), read_text(base, name, "device")) == _GPU_VENDOR_AND_DEVICE
        for name in list_names(base)
    )


def default_route_interfaces(root: str) -> set[str]:
    """Names of the interfaces that carry a default route, IPv4 or IPv6."""
    names = set()
    for line in (read_text(root, "proc/net/route") or "").splitlines()[1:]:
        words = line.split()
        if len(words) >= 8 and words[1] == "00000000" and words[7] == "00000000" and _is_up(words[3]):
            names.add(words[0])
    for line in (read_text(root, "proc/net/ipv6_route") or "").splitlines():
        words = line.split()
        if len(words) == 10 and words[0] == "0" * 32 and words[1] == "00" and words[9] != "lo" and _is_up(words[8]):
            names.add(words[9])
    return names


def _is_up(flags: str) -> bool:
    try:
        return bool(int(flags, 16) & 1)
    except ValueError:
        return False


def parse_addresses(text: str) -> list[dict[str, t.Any]]:
    """Interfaces that `ip -j address` prints. Raises ValueError where the text is no such list."""
    links = json.loads(text)
    if not isinstance(links, list):
        raise ValueError("not a list of interfaces")
    interfaces = []
    for link in links:
        # An interface that vanished while ip was reading leaves an empty object behind.
        if not isinstance(link, dict) or "ifname" not in link:
            continue
        flags = link.get("flags", [])
        interfaces.append(
            {
                "name": link["ifname"],
                "mac": link.get("address"),
                "mtu": link.get("mtu"),
                "state": str(link.get("operstate", "unknown")).lower(),
                # An interface that is not up tells nothing of its cable.
                "carrier": "LOWER_UP" in flags and "NO-CARRIER" not in flags if "UP" in flags else None,
                "addresses": [
                    f"{address['local']}/{address['prefixlen']}"
                    for address in link.get("addr_info", [])
                    if "local" in address and "prefixlen" in address
                ],
            }
        )
    return interfaces


def read_links(root: str) -> list[dict[str, t.Any]]:
    """Interfaces from /sys/class/net, without addresses: for a node that has no ip command."""
    base = os.path.join(root, "sys/class/net")
    return [
        {
            "name": name,
            "mac": read_text(base, name, "address") or None,
            "mtu": read_number(base, name, "mtu"),
            "state": read_text(base, name, "operstate") or "unknown",
            "carrier": None if (carrier := read_number(base, name, "carrier")) is None else carrier == 1,
            "addresses": [],
        }
        for name in list_names(base)
        if os.path.isdir(os.path.join(base, name))
    ]


def describe_interfaces(root: str, interfaces: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The interfaces with their driver and whether a default route uses them, sorted by name."""
    routed = default_route_interfaces(root)
    for interface in interfaces:
        interface["driver"] = link_target_name(root, "sys/class/net", interface["name"], "device/driver")
        interface["default_route"] = interface["name"] in routed
    return sorted(interfaces, key=lambda interface: interface["name"])


def netplan_renderer(text: str) -> str | None:
    """The renderer that a netplan file sets for all of its interfaces, or None."""
    inline = re.search(r"^network:\s*\{.*\brenderer:\s*([A-Za-z]+)", text, re.MULTILINE)
    if inline:
        return inline.group(1)
    level = None
    inside = False
    for line in text.splitlines():
        bare = line.split(" #")[0].rstrip()
        if not bare.strip() or bare.lstrip().startswith("#"):
            continue
        indent = len(bare) - len(bare.lstrip())
        if indent == 0:
            inside = bare.startswith("network:")
            level = None
        elif inside:
            level = indent if level is None else level
            found = re.match(r"^\s*renderer:\s*[\"']?(\w+)", bare)
            if found and indent == level:
                return found.group(1)
    return None


def read_renderer(root: str) -> str | None:
    """Who drives the network: networkd or NetworkManager.

    The last readable netplan file that names one wins, as in netplan. These files are mode 0600, so where a normal user
    cannot read them what netplan made of them under /run tells it.
    """
    files: dict[str, str] = {}
    for folder in ("lib/netplan", "etc/netplan", "run/netplan"):
        for name in list_names(root, folder):
            if name.endswith(".yaml"):
                files[name] = os.path.join(root, folder, name)
    renderer = None
    unreadable = False
    for name in sorted(files):
        text = read_text(files[name])
        if text is None:
            unreadable = True
        else:
            renderer = netplan_renderer(text) or renderer
    if renderer in _RENDERERS:
        return renderer
    if files and not unreadable:
        return "networkd"
    if any("-netplan-" in name and name.endswith(".network") for name in list_names(root, "run/systemd/network")):
        return "networkd"
    return "NetworkManager" if list_names(root, "run/NetworkManager") else None


def read_platform(root: str, uname: t.Any, cpus: int | None) -> dict[str, t.Any]:
    """Platform facts of files alone; the caller adds `interfaces`. `uname` is what os.uname() returns."""
    dmi = read_dmi(root)
    dgx = read_dgx_release(root)
    is_spark = has_gb10_on_pci(root) or dgx["name"] == "DGX Spark"
    return {
        **dmi,
        "is_spark": is_spark,
        "oem": oem_name(dmi["vendor"]) if is_spark else None,
        "dgx": dgx,
        "kernel": uname.release,
        "architecture": uname.machine,
        "os": read_os_release(root),
        "cpus": cpus,
        **read_memory(root),
        "boot_id": read_text(root, "proc/sys/kernel/random/boot_id") or None,
        "renderer": read_renderer(root),
    }


def confirm_spark(platform: dict[str, t.Any], gpu: dict[str, t.Any]) -> None:
    """A GPU of the name NVIDIA GB10 makes a Spark of a node that neither PCI bus nor release file shows to be one."""
    if any(device["name"] == "NVIDIA GB10" for device in gpu["devices"]):
        platform["is_spark"] = True
        platform["oem"] = oem_name(platform["vendor"])
