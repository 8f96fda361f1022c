# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What machine and system a node is: DMI, release files, firmware, names, clock, disks, interfaces. Files and text in, data out."""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import json
import os
import re
import struct
import time
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils import _firmware
from ansible_collections.gb10.fleet.plugins.module_utils._files import (
    follow_links, is_directory, link_target_name, list_names, read_number, read_text,
)

PROBES: dict[str, tuple[str, ...]] = {"addresses": ("ip", "-j", "address"), **_firmware.PROBES}
DISKS = ("/", "/boot", "/opt/gb10", "/var/lib/gb10", "/tmp")

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
_HOST_NAME = re.compile(r"^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?$")
_NOT_FOUND = 2
# The largest error of the kernel's clock at which anybody keeps it, in microseconds; systemd takes the same.
_LARGEST_ERROR = 16_000_000
_DIGEST_LENGTH = 12
_LONGEST_EVIDENCE = 200

Note = t.Callable[[str, str, str], None]
Space = t.Callable[[str], t.Optional[t.Dict[str, int]]]


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
    try:
        links = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(links, list):
        raise ValueError("not a list of interfaces")
    interfaces = []
    for link in links:
        # An interface that vanished while ip was reading leaves an empty object behind.
        if not isinstance(link, dict) or not isinstance(link.get("ifname"), str):
            continue
        flags, addresses = link.get("flags"), link.get("addr_info")
        flags = flags if isinstance(flags, list) else []
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
                    for address in (addresses if isinstance(addresses, list) else [])
                    if isinstance(address, dict) and "local" in address and "prefixlen" in address
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
        if is_directory(base, name)
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


def read_interfaces(root: str, answer: t.Any, note: Note) -> list[dict[str, t.Any]]:
    """Interfaces by the answer of `ip -j address`; without one those of /sys, whose addresses nobody knows."""
    interfaces = None
    if answer is not None and answer.status == 0:
        try:
            interfaces = parse_addresses(answer.output)
        except ValueError:
            note("ip -j address", "not_understood", answer.output.strip()[:_LONGEST_EVIDENCE])
    return describe_interfaces(root, read_links(root) if interfaces is None else interfaces)


def read_clock() -> bool | None:
    """Whether something keeps the kernel's clock, whatever its name; None where the kernel does not say. It is only read."""
    # The modes, all zero to change nothing, are the first of the structure's 208 bytes; maxerror is the fourth value.
    timex = ctypes.create_string_buffer(512)
    try:
        state = ctypes.CDLL(None).adjtimex(timex)
    except (OSError, AttributeError):
        return None
    return None if state < 0 else struct.unpack_from("@Illl", timex)[3] < _LARGEST_ERROR


def digest_of(machine_id: str) -> str | None:
    """A digest that is equal on two nodes with one machine-id, and tells nothing of the id, which is confidential."""
    if not re.match(r"^[0-9a-f]{32}$", machine_id):
        return None
    return hmac.new(machine_id.encode(), b"gb10.fleet", hashlib.sha256).hexdigest()[:_DIGEST_LENGTH]


def machine_id_digest(root: str) -> str | None:
    """The digest of the node's machine-id."""
    return digest_of(read_text(root, "etc/machine-id") or "")


def host_name(root: str) -> str | None:
    """The node's own name."""
    return read_text(root, "proc/sys/kernel/hostname") or read_text(root, "etc/hostname") or None


def more_probes(root: str, names: t.Sequence[str]) -> dict[str, tuple[str, ...]]:
    """A probe for each name to be resolved, the node's own among them. What is no name of a host is not asked."""
    own = host_name(root)
    return {f"name_{name}": ("getent", "ahostsv4", name) for name in dict.fromkeys([*([own] if own else []), *names]) if _HOST_NAME.match(name)}


def resolved(answer: t.Any) -> list[str] | None:
    """Addresses that `getent ahostsv4` answers, each once; none for a name that nobody knows, None where no answer came."""
    if answer is None or answer.status not in (0, _NOT_FOUND):
        return None
    words = [line.split() for line in answer.output.splitlines()]
    return list(dict.fromkeys(line[0] for line in words if line and re.match(r"^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$", line[0])))


def parse_mounts(text: str) -> dict[str, str]:
    """Type of what is mounted at each mount point of /proc/self/mounts; the last one at a place covers those before."""
    mounts = {}
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) >= 3 and words[1].startswith("/"):
            mounts[re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), words[1])] = words[2]
    return mounts


def disk_space(path: str) -> dict[str, int] | None:
    """Space and inodes of the file system at a path, as a user who is not root may use them."""
    try:
        space = os.statvfs(path)
    except OSError:
        return None
    return {
        "total_bytes": space.f_blocks * space.f_frsize,
        "free_bytes": space.f_bavail * space.f_frsize,
        "inodes_free": space.f_favail,
        "inodes_total": space.f_files,
    }


def read_disks(root: str, space: Space = disk_space) -> list[dict[str, t.Any]]:
    """The file systems under the paths that count, of the nearest parent where a path is not there yet."""
    mounts = parse_mounts(read_text(root, "proc/self/mounts") or "")
    unknown = dict.fromkeys(("total_bytes", "free_bytes", "inodes_free", "inodes_total"))
    disks = []
    for path in DISKS:
        there = path
        while there != "/" and not is_directory(root, follow_links(root, there)):
            there = os.path.dirname(there)
        real = f"/{follow_links(root, there)}"
        mount = max((point for point in mounts if f"{real}/".startswith(f"{point.rstrip('/')}/")), key=len, default=None)
        disks.append(
            {
                "path": path, "exists_at": there, "mount": mount, "type": mounts[mount] if mount else None,
                **(space(os.path.join(root, real.lstrip("/"))) or unknown),
            }
        )
    return disks


def read_platform(
    root: str, answers: t.Mapping[str, t.Any], uname: t.Any, cpus: int | None, note: Note, *, names: t.Sequence[str] = (),
    space: Space = disk_space, clock: t.Callable[[], bool | None] = read_clock, now: t.Callable[[], float] = time.time,
) -> dict[str, t.Any]:
    """Facts of the subset platform.

    Args:
        root: root directory of the node.
        answers: answers to PROBES and more_probes().
        uname: what os.uname() returns.
        cpus: number of CPUs.
        note: told what was not understood.
        names: names to be resolved.
        space: space of the file system at a path.
        clock: whether the clock is kept.
        now: seconds since 1970.
    """
    dmi = read_dmi(root)
    dgx = read_dgx_release(root)
    is_spark = has_gb10_on_pci(root) or dgx["name"] == "DGX Spark"
    own = host_name(root)
    firmware = _firmware.read_firmware(answers, note)
    return {
        **dmi,
        "is_spark": is_spark,
        "oem": oem_name(dmi["vendor"]) if is_spark else None,
        "dgx": dgx,
        "fastos_version": _last(parse_assignments(read_text(root, "etc/fastos-release")), "VERSION"),
        "kernel": uname.release,
        "architecture": uname.machine,
        "os": read_os_release(root),
        "cpus": cpus,
        **read_memory(root),
        "boot_id": read_text(root, "proc/sys/kernel/random/boot_id") or None,
        "hostname": own,
        "machine_id_digest": machine_id_digest(root),
        "own_address": resolved(answers.get(f"name_{own}")),
        "names": {name: resolved(answers.get(f"name_{name}")) for name in names},
        "clock": {"synchronized": clock(), "epoch": now()},
        "filesystems": read_disks(root, space),
        "firmware": firmware,
        "bios": _firmware.describe_bios(dmi["bios_version"], firmware["devices"]),
        "interfaces": read_interfaces(root, answers.get("addresses"), note),
        "renderer": read_renderer(root),
    }


def confirm_spark(platform: dict[str, t.Any], gpu: dict[str, t.Any]) -> None:
    """A GPU of the name NVIDIA GB10 makes a Spark of a node that neither PCI bus nor release file shows to be one."""
    if any(device["name"] == "NVIDIA GB10" for device in gpu["devices"]):
        platform["is_spark"] = True
        platform["oem"] = oem_name(platform["vendor"])
