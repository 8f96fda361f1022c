# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts and variables of a Spark pair as spark_facts gives them, for tests of the plan."""

from __future__ import annotations

import pytest

PORTS = (
    # netdev, RDMA device, cage, PCI address: the four functions of a Spark's ConnectX-7
    ("enp1s0f0np0", "rocep1s0f0", "p0", "0000:01:00.0"),
    ("enp1s0f1np1", "rocep1s0f1", "p1", "0000:01:00.1"),
    ("enP2p1s0f0np0", "roceP2p1s0f0", "p0", "0002:01:00.0"),
    ("enP2p1s0f1np1", "roceP2p1s0f1", "p1", "0002:01:00.1"),
)


def gid(index, kind, netdev, ipv4=None):
    """One entry of a GID table."""
    return {"index": index, "gid": f"gid-{index}", "type": kind, "netdev": netdev, "ipv4": ipv4}


def spark(management="10.20.30.7/24", up=("p0",), addresses=None):
    """ansible_facts.spark of a Spark.

    `up` names the cages with a link, `addresses` gives netdevs theirs. A port of another cage has an interface that is up
    and without carrier.
    """
    addresses = addresses or {}
    devices, interfaces = [], []
    for netdev, device, cage, pci in PORTS:
        active = cage in up
        gids = [gid(0, "RoCE v1", netdev), gid(1, "RoCE v2", netdev)]
        if netdev in addresses:
            own = addresses[netdev].partition("/")[0]
            gids += [gid(2, "RoCE v1", netdev, own), gid(3, "RoCE v2", netdev, own)]
        devices.append(
            {
                "name": device,
                "port": 1,
                "netdev": netdev,
                "state": "ACTIVE" if active else "DOWN",
                "link_layer": "Ethernet",
                "transport": "RoCE",
                "is_virtual_function": False,
                "cage": cage,
                "pci_address": pci,
                "gids": gids,
            }
        )
        interfaces.append(
            {
                "name": netdev,
                "mtu": 1500,
                "state": "up" if active else "down",
                "carrier": active,
                "addresses": [addresses[netdev]] if netdev in addresses else [],
                "default_route": False,
            }
        )
    interfaces.append({"name": "enP7s7", "mtu": 1500, "carrier": True, "addresses": [management, "fe80::1/64"], "default_route": True})
    interfaces.append({"name": "lo", "mtu": 65536, "carrier": True, "addresses": ["127.0.0.1/8"], "default_route": False})
    return {"rdma": {"devices": devices, "state": "ok", "reason": None}, "platform": {"interfaces": interfaces}}


@pytest.fixture(name="make_spark")
def make_spark_fixture():
    """The function that makes facts of a Spark."""
    return spark


@pytest.fixture(name="profiles")
def profiles_fixture(tmp_path):
    """A folder of profiles: pairs serves on two nodes, single on one, four on the toolchain for NVFP4."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "pairs.yml").write_text(
        "name: pairs\nmodel: small\nserved_name: small\ntensor_parallel: 2\nengine: {max-model-len: 512}\nsmoke: {messages: []}\n"
    )
    (folder / "single.yml").write_text("model: small\nserved_name: small\ntensor_parallel: 1\n")
    (folder / "four.yml").write_text("model: big\nserved_name: big\ntensor_parallel: 2\ntoolchains: [cuda-13.0]\n")
    return folder


class Fleet:
    """Clusters and variables of a healthy pair, to be bent by a test."""

    def __init__(self, profiles):
        self.clusters = [{"name": "pair", "nodes": ["spark-a", "spark-b"]}]
        self.hostvars = {}
        for number, node in enumerate(("spark-a", "spark-b", "spark-c", "spark-d")):
            self.hostvars[node] = {
                "ansible_host": f"10.20.30.{7 + number}",
                "spark_profile": "pairs",
                "spark_profiles": str(profiles),
                "spark_wheelhouse": "/srv/wheelhouse",
                "spark_model_source": "/srv/models/small",
                "ansible_facts": {"spark": spark(f"10.20.30.{7 + number}/24")},
            }

    def set(self, name, value, nodes=None):
        """A variable for some nodes, or for all."""
        for node in nodes or self.hostvars:
            self.hostvars[node][name] = value

    def facts(self, node):
        """The facts of a node."""
        return self.hostvars[node]["ansible_facts"]["spark"]

    def device(self, node, name):
        """One RDMA device of a node."""
        return next(device for device in self.facts(node)["rdma"]["devices"] if device["name"] == name)

    def interface(self, node, name):
        """One interface of a node."""
        return next(found for found in self.facts(node)["platform"]["interfaces"] if found["name"] == name)


@pytest.fixture(name="fleet")
def fleet_fixture(profiles):
    """A healthy pair."""
    return Fleet(profiles)
