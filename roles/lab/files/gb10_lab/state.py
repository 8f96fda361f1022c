# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's state file: all that its stand-in hardware answers, and so where every hardware fault is switched on. Pure."""

from __future__ import annotations

import copy
import json

from . import layout

GPU_STATES = ("ok", "needs_reset", "driver_mismatch", "no_module", "no_device")
KINDS = {str: "a text", int: "a number", float: "a number", bool: "true or false", list: "a list", dict: "a mapping"}


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
            "vbios": "9A.0B.25.00.00",
            "temperature": 36,
            "power": 4.02,
            "utilization": 0,
            "sm_clock": 208,
        },
        "rdma": {"present": True, "firmware": "28.45.4028", "psid": "NVD0000000087"},
        "rails": {
            function.netdev: {"cable": True, "link_gbps": 200, "speed_gbps": 97.98, "gid_shift": 0, "middle_mtu": 9216}
            for function in layout.FUNCTIONS
        },
        "nccl": {"socket_gbytes": 3.76},
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
        # Empty: the host's own /proc/meminfo. Names and kB: a changed one lies over it from the next boot on.
        "meminfo": {},
    }


def convert(text: str) -> object:
    """A value from a command line: JSON where it is JSON, else a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def set_value(state: dict, key: str, value: object) -> dict:
    """A copy of the state with one dotted key changed. Keys that are not there and values of another kind are refused."""
    changed = copy.deepcopy(state)
    place: object = changed
    parts = key.split(".")
    for depth, part in enumerate(parts):
        known: list = sorted(place) if isinstance(place, dict) else []
        free = parts[0] == "meminfo" and depth == 1
        if isinstance(place, list) and part.isdigit() and int(part) < len(place):
            part = int(part)  # type: ignore[assignment]
        elif part not in known and not free:
            at = ".".join(parts[:depth]) or "the state"
            raise StateError(f"{key} is not a key of the state file; {at} has {', '.join(known) or 'no keys'}.")
        if depth < len(parts) - 1:
            place = place[part]  # type: ignore[index]
            continue
        before = place.get(part) if isinstance(place, dict) else place[part]  # type: ignore[index]
        if isinstance(before, str) and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        number = isinstance(before, (int, float)) and not isinstance(before, bool)
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) if number else isinstance(value, type(before))
        if before is not None and not fits:
            raise StateError(f"{key} takes {KINDS[type(before)]}, not {json.dumps(value)}.")
        if key == "gpu.state" and value not in GPU_STATES:
            raise StateError(f"gpu.state is one of {', '.join(GPU_STATES)}, not {value}.")
        place[part] = value  # type: ignore[index]
    return changed
