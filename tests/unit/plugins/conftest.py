# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees of /sys, /proc and /etc as a node has them, and the recorded outputs of spark_facts."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest

RECORDED = Path(__file__).parent.parent / "fixtures" / "spark_facts"
EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


@pytest.fixture
def recorded() -> t.Callable[[str], str]:
    """Reads a recorded output of spark_facts by its name."""
    return lambda name: (RECORDED / name).read_text(encoding="utf-8")


class Tree:
    """A file tree that stands for a node's root directory."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.path = root

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def link(self, name: str, target: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, path)

    def netdev(self, name: str, *, mtu: int = 1500, speed: int = -1, port_name: str | None = None, pci: str | None = None) -> None:
        """A network interface, in its PCI device's folder as sysfs has it where `pci` is given."""
        home = f"sys/devices/pci/{pci}/net/{name}" if pci else f"sys/devices/virtual/net/{name}"
        self.write(f"{home}/mtu", f"{mtu}\n")
        self.write(f"{home}/speed", f"{speed}\n")
        self.write(f"{home}/operstate", "up\n")
        if port_name:
            self.write(f"{home}/phys_port_name", f"{port_name}\n")
        if pci:
            self.link(f"{home}/device", f"../../../{pci}")
        self.link(f"sys/class/net/{name}", f"../../../{home}")

    def rdma(
        self,
        name: str,
        *,
        pci: str | None = None,
        state: str | None = "4: ACTIVE",
        phys_state: str | None = "5: LinkUp",
        rate: str = "200 Gb/sec (4X HDR)",
        link_layer: str | None = "Ethernet",
        node_type: str = "1: CA",
        gids: t.Sequence[tuple[int, str, str, str | None]] = (),
        psid: str | None = "NVD0000000087",
        system_guid: str = "5e0a:1103:0077:1c16",
        firmware: str = "28.45.4028",
        port: int = 1,
    ) -> None:
        """An RDMA device with one port; a GID is index, GID, type and netdev."""
        home = f"sys/devices/pci/{pci}" if pci else "sys/devices/virtual"
        device = f"{home}/infiniband/{name}"
        texts = {
            "fw_ver": firmware,
            "board_id": psid,
            "node_type": node_type,
            "node_guid": "5e0a:1103:0077:1c17",
            "sys_image_guid": system_guid,
            f"ports/{port}/state": state,
            f"ports/{port}/phys_state": phys_state,
            f"ports/{port}/rate": rate,
            f"ports/{port}/link_layer": link_layer,
        }
        for index in range(8):
            texts[f"ports/{port}/gids/{index}"] = EMPTY_GID
        for index, gid, kind, netdev in gids:
            texts[f"ports/{port}/gids/{index}"] = gid
            texts[f"ports/{port}/gid_attrs/types/{index}"] = kind
            texts[f"ports/{port}/gid_attrs/ndevs/{index}"] = netdev
        for file, text in texts.items():
            if text is not None:
                self.write(f"{device}/{file}", f"{text}\n")
        if pci:
            self.write(f"{home}/uevent", f"DRIVER=mlx5_core\nPCI_SLOT_NAME={pci}\n")
            self.write(f"{home}/current_link_speed", "32.0 GT/s PCIe\n")
            self.write(f"{home}/current_link_width", "4\n")
            self.link(f"{device}/device", "../../../" + pci)
        self.link(f"sys/class/infiniband/{name}", f"../../../{device}")

    def gb10_pair(self, mtu: int = 9000) -> None:
        """The four functions of a GB10 with the second cage cabled, as ibdev2netdev of a healthy unit shows them."""
        functions = (
            ("0000:01:00.0", "enp1s0f0np0", "rocep1s0f0", "p0", 1500),
            ("0000:01:00.1", "enp1s0f1np1", "rocep1s0f1", "p1", mtu),
            ("0002:01:00.0", "enP2p1s0f0np0", "roceP2p1s0f0", "p0", 1500),
            ("0002:01:00.1", "enP2p1s0f1np1", "roceP2p1s0f1", "p1", mtu),
        )
        for number, (pci, netdev, device, port_name, netdev_mtu) in enumerate(functions):
            up = port_name == "p1"
            link_local = f"fe80:0000:0000:0000:5e0a:11ff:fee8:9f3{number}"
            gids = [(0, link_local, "IB/RoCE v1", netdev), (1, link_local, "RoCE v2", netdev)]
            if up:
                mapped = f"0000:0000:0000:0000:0000:ffff:c0a8:6{4 + (number > 1)}0a"
                gids += [(2, mapped, "IB/RoCE v1", netdev), (3, mapped, "RoCE v2", netdev)]
            self.netdev(netdev, mtu=netdev_mtu, speed=200000 if up else -1, port_name=port_name, pci=pci)
            self.rdma(
                device,
                pci=pci,
                state="4: ACTIVE" if up else "1: DOWN",
                phys_state="5: LinkUp" if up else "3: Disabled",
                rate="200 Gb/sec (4X HDR)" if up else "40 Gb/sec (4X QDR)",
                gids=gids,
            )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """An empty node."""
    return Tree(tmp_path)
