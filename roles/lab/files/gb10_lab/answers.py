# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stand-in tools print, worked out from a node's state. Pure."""

from __future__ import annotations

# What sysfs says of each of the card's functions: PCIe Gen5 x4.
PCI_FILES = {
    "vendor": "0x15b3\n", "device": "0x1021\n", "class": "0x020000\n",
    "current_link_speed": "32.0 GT/s PCIe\n", "current_link_width": "4\n", "max_link_speed": "32.0 GT/s PCIe\n", "max_link_width": "4\n",
    "numa_node": "-1\n", "sriov_numvfs": "0\n", "sriov_totalvfs": "8\n",
}


def dgx_release(pairs: list[list[str]]) -> str:
    return "".join(f'{name}="{value}"\n' for name, value in pairs)


def files(state: dict) -> dict[str, str]:
    """All answers, by their path in the node's shared folder."""
    return {}
