# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils import nccl

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nccl"


def rows(name):
    """The rows of a fixture, without comments."""
    lines = (FIXTURES / name).read_text().splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


DEVICES = (FIXTURES / "ib_hca_selectors.tsv").read_text().splitlines()[0].partition(": ")[2].split()


@pytest.mark.parametrize("selector, expected", rows("ib_hca_selectors.tsv"))
def test_selectors_choose_what_nccl_chooses(selector, expected):
    if expected.startswith("REJECT"):
        with pytest.raises(nccl.NcclError, match="only once, at the start"):
            nccl.select_devices(selector, DEVICES)
    else:
        assert nccl.select_devices(selector, DEVICES) == expected.split(",")


def candidates():
    interfaces = []
    for name, _kind, address, note in [row + [""] * (4 - len(row)) for row in rows("interface_candidates.tsv")[1:]]:
        interfaces.append({"name": name, "addresses": [address] if address else [], "default_route": note == "default route"})
    return interfaces


@pytest.mark.parametrize(
    "peer, expected",
    [("10.1.2.88", "enp90s0np0"), ("10.9.9.9", "enp90s0np0"), ("10.0.21.95", "enp90s0np0"), ("127.0.0.2", "enp90s0np0")],
)
def test_the_interface_is_the_one_with_a_way_to_the_peer(peer, expected):
    assert nccl.interface_towards(candidates(), peer) == expected


def test_the_smallest_network_that_holds_the_peer_wins():
    interfaces = [
        {"name": "wide", "addresses": ["10.0.0.1/8"], "default_route": True},
        {"name": "narrow", "addresses": ["fe80::1/64", "10.1.1.1/24"], "default_route": False},
    ]
    assert nccl.interface_towards(interfaces, "10.1.1.2") == "narrow"
    assert nccl.interface_towards(interfaces, "10.2.1.2") == "wide"
    assert nccl.interface_towards(interfaces, "192.0.2.1") == "wide"
    assert nccl.interface_towards(interfaces[1:], "192.0.2.1") is None


def test_only_active_ports_in_the_fabric_are_listed_and_in_one_order():
    nodes = {}
    for node, name, state, address, _note in [row + [""] * (5 - len(row)) for row in rows("gb10_hca_pairing.tsv")[1:]]:
        gids = [{"index": 3, "type": "RoCE v2", "ipv4": address or None}]
        device = {"name": name, "netdev": f"en{name}", "link_layer": "Ethernet", "transport": "RoCE", "state": state, "gids": gids}
        nodes.setdefault(node, []).append(device)
    assert {node: nccl.fabric_devices(devices, ["10.100.0.0/24"]) for node, devices in nodes.items()} == {
        "spark-2": ["roceP2p1s0f1"],
        "spark-3": ["roceP2p1s0f1"],
    }
    assert nccl.fabric_devices(nodes["spark-2"], ["10.100.0.0/24", "10.0.0.0/24"]) == ["roceP2p1s0f1", "rocep1s0f0"]


@pytest.mark.parametrize(
    "change",
    [
        {"link_layer": "InfiniBand"},
        {"netdev": None},
        {"is_virtual_function": True},
        {"transport": "iWARP"},
        {"transport": "unspecified"},
    ],
)
def test_what_is_no_roce_port(change):
    device = {"link_layer": "Ethernet", "netdev": "enp1s0f0np0", "is_virtual_function": False, "transport": "RoCE"}
    assert nccl.is_roce(device)
    assert not nccl.is_roce({**device, **change})


def plan(**changes):
    rails = [
        {"netdev": "enp1s0f0np0", "device": "rocep1s0f0", "address": "192.168.100.10"},
        {"netdev": "enP2p1s0f0np0", "device": "roceP2p1s0f0", "address": "192.168.101.10"},
    ]
    made = {"address": "192.168.100.10", "interface": "enp1s0f0np0", "rails": rails, "topology": "pair"}
    return {**made, "toolchain": {"name": "cuda-12.8", "device": "cuda"}, **changes}


CPU = {"toolchain": {"name": "cpu", "device": "cpu"}}


def test_environment_of_a_gpu_node():
    assert nccl.environment(plan()) == {
        "GLOO_SOCKET_IFNAME": "enp1s0f0np0",
        "NCCL_IB_HCA": "=rocep1s0f0,roceP2p1s0f0",
        "NCCL_NET": "IB",
        "NCCL_SOCKET_IFNAME": "=enp1s0f0np0",
        "VLLM_HOST_IP": "192.168.100.10",
    }


def test_environment_of_a_cpu_node_has_nothing_of_nccl():
    overrides = {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": 2}
    assert nccl.environment(plan(**CPU), overrides) == {
        "GLOO_SOCKET_IFNAME": "enp1s0f0np0",
        "OMP_NUM_THREADS": "2",
        "VLLM_HOST_IP": "192.168.100.10",
    }


def test_environment_of_a_single_node():
    assert nccl.environment(plan(rails=[], address="127.0.0.1", interface="lo")) == {"VLLM_HOST_IP": "127.0.0.1"}


def test_environment_in_a_ring_takes_the_rail_of_the_peers_subnet():
    ring = nccl.environment(plan(topology="ring", interface="enP7s7"))
    assert ring["NCCL_IB_SUBNET_AWARE_ROUTING"] == "1"
    assert ring["NCCL_NET_PLUGIN"] == "none"
    assert ring["GLOO_SOCKET_IFNAME"] == "enP7s7"


def test_overrides_win_and_null_takes_away():
    made = nccl.environment(plan(), {"NCCL_IB_QPS_PER_CONNECTION": 4, "NCCL_NET": None})
    assert made["NCCL_IB_QPS_PER_CONNECTION"] == "4"
    assert "NCCL_NET" not in made


def remarks(make_spark, overrides, addresses=None, **changes):
    facts = make_spark(addresses=addresses)
    return [(found.severity, found.name, found.what) for found in nccl.check_overrides(overrides, facts, plan(**changes))]


ADDRESSED = {"enp1s0f0np0": "192.168.100.10/24", "enP2p1s0f0np0": "192.168.101.10/24"}


@pytest.mark.parametrize(
    "name, value, severity, words",
    [
        ("NCCL_IB_TIMEOUT", 0, "fail", "goes from 1 to 31 (it is no number of seconds"),
        ("NCCL_IB_TIMEOUT", 32, "fail", "is 32"),
        ("NCCL_IB_TIMEOUT", "22s", "fail", "is 22s"),
        ("NCCL_IB_TIMEOUT", 22, "info", "17.2 s a try, 120 s in all"),
        ("NCCL_IB_CUDA_SUPPORT", 1, "fail", "was removed in NCCL 2.4"),
        ("NCCL_NET_GDR_LEVEL", 5, "warn", "no GPUDirect RDMA"),
        ("NCCL_IB_TC", 256, "fail", "from 0 to 255"),
        ("NCCL_IB_SL", 16, "fail", "from 0 to 15"),
        ("NCCL_IB_QPS_PER_CONNECTION", 0, "fail", "from 1 to 128"),
        ("NCCL_IB_DISABLE", 1, "fail", "turns RDMA off"),
        ("NCCL_DEBUG", "WARNING", "fail", "did you mean WARN"),
        ("NCCL_IB_HCA", "=mlx5_0", "fail", "has mlx5_0, which this node has not"),
        ("NCCL_IB_HCA", "=enp1s0f0np0", "fail", "is a network interface; its RDMA device is rocep1s0f0"),
        ("NCCL_IB_HCA", "^=rocep1s0f1,^=roceP2p1s0f1", "fail", "write ^= only once, at the start"),
        ("NCCL_IB_HCA", "=rocep1s0f0", "warn", "leaves out rail roceP2p1s0f0"),
        ("NCCL_IB_HCA", "roce", "warn", "adds rocep1s0f1, roceP2p1s0f1, which is no rail"),
        ("NCCL_IB_HCA", "^roce", "fail", "selects no device"),
        ("NCCL_SOCKET_IFNAME", "=eth0", "fail", "selects no interface of this node"),
        ("NCCL_SOCKET_IFNAME", "^lo,^en", "fail", "a modifier stands inside the list"),
        ("GLOO_SOCKET_IFNAME", "enp1s0f0np", "fail", "gloo takes one exact name"),
        ("VLLM_HOST_IP", "192.168.100.10", "fail", "derived for each node"),
        ("not a name", "1", "fail", "is no name of an environment variable"),
        ("NCCL_DEBUG", "INFO\nX=1", "fail", "must be one line of text"),
        ("NCCL_DEBUG", ["INFO"], "fail", "must be one line of text"),
        ("NCCL_IB_GID_INDEX", 300, "fail", "from -1 to 255"),
    ],
)
def test_doubtful_overrides(make_spark, name, value, severity, words):
    found = remarks(make_spark, {name: value})
    assert [(one[0], one[1]) for one in found] == [(severity, name)]
    assert words in found[0][2]


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"NCCL_IB_HCA": "=rocep1s0f0,roceP2p1s0f0"},
        {"NCCL_IB_HCA": "^=rocep1s0f1,roceP2p1s0f1"},
        {"NCCL_SOCKET_IFNAME": "^lo,docker"},
        {"GLOO_SOCKET_IFNAME": "enP7s7", "NCCL_DEBUG": "info", "NCCL_IB_GID_INDEX": -1, "NCCL_NET": None},
    ],
)
def test_good_overrides(make_spark, overrides):
    assert remarks(make_spark, overrides) == []


def test_gid_index_is_checked_against_the_addresses(make_spark):
    def severities(index, addresses):
        return [found[0] for found in remarks(make_spark, {"NCCL_IB_GID_INDEX": index}, addresses)]

    assert severities(3, None) == ["warn"]
    assert severities(3, ADDRESSED) == ["warn"]
    wrong = remarks(make_spark, {"NCCL_IB_GID_INDEX": 2}, ADDRESSED)
    assert [found[0] for found in wrong] == ["warn", "fail", "fail"]
    assert "is 2, which is RoCE v1 192.168.100.10 on rocep1s0f0; the RoCE v2 GID of 192.168.100.10 has index 3" in wrong[1][2]
    assert "is 5, which is empty on rocep1s0f0" in remarks(make_spark, {"NCCL_IB_GID_INDEX": 5}, ADDRESSED)[1][2]


def test_nccl_on_a_cpu_toolchain_is_a_warning(make_spark):
    assert remarks(make_spark, {"NCCL_IB_TIMEOUT": 99}, **CPU) == [
        ("warn", "NCCL_IB_TIMEOUT", "has no effect with toolchain cpu, which has no NCCL")
    ]


def test_overrides_that_are_no_mapping():
    assert nccl.check_overrides(["NCCL_DEBUG=INFO"], {}, plan())[0].severity == "fail"


def test_environment_text_quotes_what_systemd_would_read_otherwise():
    text = nccl.environment_text({"B": "=a,b", "A": "two words", "C": 'a "quote" and $HOME', "D": ""})
    assert text == 'A="two words"\nB==a,b\nC="a \\"quote\\" and \\$HOME"\nD=\n'
