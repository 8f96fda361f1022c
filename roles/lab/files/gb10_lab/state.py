# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's state file: all that its stand-in hardware answers, and so where every hardware fault is switched on. Pure."""

from __future__ import annotations

import copy
import json
import re

from . import layout, rdma

# Keys that take one of a few words.
CHOICES = {
    "gpu.state": ("ok", "needs_reset", "driver_mismatch", "no_module", "no_device"),
    "gpu.inforom": ("ok", "corrupted"),
}
# Programs of the lab that can be made to hang.
STAND_INS = (
    "all_gather_perf", "all_reduce_perf", "dmidecode", "fwupdmgr", "ib_write_bw", "ibdev2netdev", "ibv_devinfo", "mpirun", "nvidia-smi", "orted",
)
# What fwupd writes of a device only at times, with a sample that gives its kind.
FIRMWARE_AT_TIMES = {"UpdateState": 2, "UpdateError": "", "UpdateMessage": "", "Summary": "", "Serial": "", "ParentDeviceId": "", "Releases": []}
PROCESS = {"pid": 0, "name": "", "used_mib": 0}
SWAP = {"path": "", "type": "", "size_kb": 0, "used_kb": 0}
KINDS = {str: "a text", int: "a number", float: "a number", bool: "true or false", list: "a list", dict: "a mapping"}


# The kernel of DGX OS whose files lie on each node; the one that runs is the host's.
KERNEL = "6.17.0-1029-nvidia"
NCCL_BUILD_ID = "4a5e1f0c2b6d4c0b9f1d7e6a5b4c3d2e1f0a9b8c"


class StateError(ValueError):
    """A key or value that the state file does not take."""


def healthy(lab: str, node: str) -> dict:
    """A Founders Edition in good health, as the reference captures show it."""
    serial = int(layout.digest(lab, node, "serial")[:10], 16) % 10**13
    uuid = layout.digest(lab, node, "gpu")
    return {
        "gpu": {
            "state": "ok",
            "name": "NVIDIA GB10",
            "uuid": f"GPU-{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:32]}",
            "bus_id": "0000000F:01:00.0",
            "compute_cap": "12.1",
            "driver": "580.142",
            "library": "580.142",
            "gsp_firmware": "580.142",
            "cuda": "13.0",
            "present": True,  # on the PCI bus
            "inforom": "ok",
            "processes": [],  # of pid, name and used_mib
            "vbios": "9A.0B.25.00.00",
            "temperature": 36,
            "power": 4.02,
            "utilization": 0,
            "sm_clock": 208,
        },
        "rdma": {"present": True, "firmware": "28.45.4028", "psid": "NVD0000000087", "virtual_functions": 0, "driver": True, "port_names": True},
        "rails": {
            function.netdev: {
                "cable": True, "link_gbps": 200, "speed_gbps": 97.98, "gid_shift": 0, "gids": True, "middle_mtu": 9216,
                "pcie": {"speed": "32.0 GT/s PCIe", "width": 4, "max_speed": "32.0 GT/s PCIe", "max_width": 4},
                "link_layer": "Ethernet",  # InfiniBand: trained, and no subnet manager
                "counters": {},  # those of the port that are not 0
                "active_mtu": 0,  # what RDMA keeps using whatever the interface's MTU is; 0 follows it
            }
            for function in layout.FUNCTIONS
        },
        "nccl": {
            "socket_gbytes": 3.76,
            "sockets": False,  # a plugin that drops to sockets whatever NCCL_NET says
            "gbytes": 0.0,  # what NCCL gets at most of good rails; 0: all of them
            "wrong": 0,  # values of each comparison that come out wrong
            "single_rank": False,  # nccl-tests built without MPI
            "version": "2.28.3",
            "build_id": NCCL_BUILD_ID,
        },
        "dmi": {
            "sys_vendor": "NVIDIA",
            "product_name": "NVIDIA_DGX_Spark",
            "product_family": "DGX Spark",
            "product_version": "A.7",
            "product_sku": "N/A",
            "product_serial": f"{serial:013d}",
            "product_uuid": f"{uuid[32:40]}-{uuid[40:44]}-{uuid[44:48]}-{uuid[48:52]}-{uuid[52:64]}",
            "board_vendor": "NVIDIA",
            "board_name": "P4242",
            "board_version": "A.7",
            "board_serial": f"{serial:013d}",
            "bios_vendor": "AMI",
            "bios_version": "5.36_0ACUM023",
            "bios_date": "12/11/2025",
            "bios_release": "5.36",
            "chassis_vendor": "NVIDIA",
            "chassis_type": "3",
        },
        "dgx_release": [
            ["DGX_NAME", "DGX Spark"],
            ["DGX_PRETTY_NAME", "NVIDIA DGX Spark"],
            ["DGX_SWBUILD_DATE", "2025-09-10-13-50-03"],
            ["DGX_SWBUILD_VERSION", "7.2.3"],
            ["DGX_COMMIT_ID", "833b4a7"],
            ["DGX_PLATFORM", "DGX Server for KVM"],
            ["DGX_SERIAL_NUMBER", f"{serial:013d}"],
            ["DGX_OTA_VERSION", "7.4.0"],
            ["DGX_OTA_DATE", "2026-02-04"],
            ["DGX_OTA_VERSION", "7.5.0"],
            ["DGX_OTA_DATE", "2026-07-14"],
        ],
        "firmware": [
            {
                "Name": "Embedded Controller",
                "Guid": ["3d13c989-e6a8-4ead-95ee-921f09868f65"],
                "Plugin": "uefi_capsule",
                "Vendor": "NVIDIA",
                "VendorId": "DMI:NVIDIA",
                "Version": "3.5.8",
                "VersionFormat": "surface",
                "VersionRaw": 0x03000508,
                "Flags": ["internal", "updatable", "require-ac", "supported", "registered", "needs-reboot"],
                "Releases": [],
            },
            {
                "Name": "UEFI Device Firmware",
                "Guid": ["b488217b-3895-4fc0-b1bf-ab7005a2d45a"],
                "Plugin": "uefi_capsule",
                "Vendor": "NVIDIA",
                "VendorId": "DMI:NVIDIA",
                "Version": "2.155.11",
                "VersionFormat": "surface",
                "VersionRaw": 0x02009B0B,
                "Flags": ["internal", "updatable", "require-ac", "supported", "registered", "needs-reboot"],
                "Releases": [],
            },
            {
                "Name": "UEFI Device Firmware",
                "Guid": ["dd1a238a-5f8e-46bd-9401-a88da99c5a96"],
                "Plugin": "uefi_capsule",
                "Vendor": "NVIDIA",
                "VendorId": "DMI:NVIDIA",
                "Version": "0.5.22",
                "VersionFormat": "surface",
                "VersionRaw": 0x516,
                "Flags": ["internal", "updatable", "require-ac", "supported", "registered", "needs-shutdown"],
                "Releases": [],
            },
            {
                "Name": "UEFI dbx",
                "Guid": ["67d35028-ca5b-5834-834a-f97380381082"],
                "Plugin": "uefi_dbx",
                "VendorId": "UEFI:Linux Foundation",
                "Version": "20230501",
                "VersionFormat": "number",
                "Flags": ["internal", "updatable", "registered", "needs-reboot", "only-version-upgrade"],
                "Releases": [],
            },
        ],
        # fwupd's history, newest last.
        "firmware_history": [],
        # Programs that never end, and those that end at once with 1 and a text.
        "tools": {"hang": [], "fail": {}},
        "proc": {
            "cmdline": f"BOOT_IMAGE=/boot/vmlinuz-{KERNEL} root=UUID={uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:32]} ro quiet splash",
            "kernel": "",  # /proc/sys/kernel/osrelease; empty: the host's. uname stays the host's
            # Of path, type, size_kb and used_kb; the host's swap is not the node's.
            "swaps": [],
        },
        # Empty: the host's own /proc/meminfo. Names and kB: a changed one lies over it.
        "meminfo": {},
    }


def convert(text: str) -> object:
    """A value from a command line: JSON where it is JSON, else a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def at_times(parts: list[str]) -> dict[str, object] | None:
    """What a mapping of the state may hold besides what it holds: names with a sample of their kind. None: any name with a number."""
    if parts == ["meminfo"]:
        return None
    if len(parts) == 3 and parts[0] == "rails" and parts[2] == "counters":
        return dict.fromkeys((*rdma.COUNTERS, *rdma.HARDWARE_COUNTERS), 0)
    if len(parts) == 2 and parts[0] == "firmware":
        return FIRMWARE_AT_TIMES
    if parts == ["tools", "fail"]:
        return dict.fromkeys(STAND_INS, "")
    return {}


def check(key: str, value: object, sample: object) -> object:
    """The value as the key takes it; a number where a text belongs becomes one."""
    if isinstance(sample, str) and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    number = isinstance(sample, (int, float)) and not isinstance(sample, bool)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) if number else isinstance(value, type(sample))
    if sample is not None and not fits:
        raise StateError(f"{key} takes {KINDS[type(sample)]}, not {json.dumps(value)}.")
    if key in CHOICES and value not in CHOICES[key]:
        raise StateError(f"{key} is one of {', '.join(CHOICES[key])}, not {value}.")
    parts = key.split(".")
    if parts[0] == "rails" and parts[-1] == "link_layer" and value not in ("Ethernet", "InfiniBand"):
        raise StateError(f"{key} is Ethernet or InfiniBand, not {value}.")
    if key == "tools.hang" and set(value) - set(STAND_INS):  # type: ignore[call-overload]
        raise StateError(f"tools.hang names some of {', '.join(STAND_INS)}, not {json.dumps(value)}.")
    if key == "nccl.build_id" and not re.fullmatch(r"(?:[0-9a-f]{2}){4,64}", value):  # type: ignore[arg-type]
        raise StateError(f"{key} is a build id in hexadecimal, not {value}.")
    if key == "nccl.version" and not re.fullmatch(r"\d+\.\d+\.\d+", value):  # type: ignore[arg-type]
        raise StateError(f"{key} is a version as 2.28.3, not {value}.")
    rows = {"gpu.processes": PROCESS, "proc.swaps": SWAP}.get(key)
    if rows is not None:
        for number, row in enumerate(value):  # type: ignore[arg-type, var-annotated]
            if not isinstance(row, dict) or set(row) != set(rows):
                raise StateError(f"{key}[{number}] must have {', '.join(rows)}, and no more; it is {json.dumps(row)}.")
            for name, entry in row.items():
                check(f"{key}[{number}].{name}", entry, rows[name])
    if parts[0] == "rails" and parts[-1] == "counters":
        for name, count in value.items():  # type: ignore[attr-defined]
            if name not in at_times(parts):  # type: ignore[operator]
                raise StateError(f"{key} has no counter {name!r}.")
            check(f"{key}.{name}", count, 0)
    return value


def set_value(state: dict, key: str, value: object) -> dict:
    """A copy of the state with one dotted key changed. Keys that are not there and values of another kind are refused."""
    changed = copy.deepcopy(state)
    place: object = changed
    parts = key.split(".")
    for depth, part in enumerate(parts):
        known: list = sorted(place) if isinstance(place, dict) else []
        more = at_times(parts[:depth]) if isinstance(place, dict) else {}
        if isinstance(place, list) and part.isdigit() and int(part) < len(place):
            part = int(part)  # type: ignore[assignment]
        elif part not in known and more is not None and part not in more:
            at = ".".join(parts[:depth]) or "the state"
            raise StateError(f"{key} is not a key of the state file; {at} has {', '.join(sorted({*known, *more})) or 'no keys'}.")
        if depth < len(parts) - 1:
            place = place[part]  # type: ignore[index]
            continue
        sample = place[part] if not isinstance(place, dict) or part in place else 0 if more is None else more[part]  # type: ignore[index]
        place[part] = check(key, value, sample)  # type: ignore[index]
    return changed


def reset(state: dict, fresh: dict, keys: list[str]) -> dict:
    """A copy with these dotted keys (of mappings) as in the healthy state; without keys the healthy state itself."""
    if not keys:
        return copy.deepcopy(fresh)
    changed = copy.deepcopy(state)
    for key in keys:
        *path, last = key.split(".")
        place, healthy_place = changed, fresh
        for part in path:
            if not isinstance(healthy_place.get(part), dict):
                raise StateError(f"{key} cannot be put back alone; name {'.'.join(path[:1])}.")
            place, healthy_place = place[part], healthy_place[part]
        if last not in healthy_place:
            raise StateError(f"{key} is not a key of the healthy state; {'.'.join(path) or 'it'} has {', '.join(sorted(healthy_place))}.")
        place[last] = copy.deepcopy(healthy_place[last])
    return changed
