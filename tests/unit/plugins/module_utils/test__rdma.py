# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import pathlib
import tempfile
import types

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _rdma
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def by_name(devices):
    return {device["name"]: device for device in devices}


def links_of(text):
    """Device, netdev and state of ibdev2netdev's lines."""
    return [(line.split()[0], line.split()[4], line.split()[5]) for line in text.splitlines()]


@pytest.mark.parametrize(
    "netdev_mtu, expected",
    [(1500, 1024), (4096, 2048), (2144, 2048), (2143, 1024), (4191, 2048), (4192, 4096), (9000, 4096), (352, 256), (351, None), (None, None)],
)
def test_expected_active_mtu(netdev_mtu, expected):
    assert _rdma.expected_active_mtu(netdev_mtu) == expected


@pytest.mark.parametrize(
    "text, gbps, lanes, signalling",
    [
        ("200 Gb/sec (4X HDR)", 200.0, 4, "HDR"),
        ("2.5 Gb/sec (1X SDR)", 2.5, 1, "SDR"),
        ("10 Gb/sec (4X)", 10.0, 4, None),
        ("2.5", 2.5, None, None),
        ("100.0 Gbps (128)", 100.0, None, None),
    ],
)
def test_rates(text, gbps, lanes, signalling):
    assert _rdma.parse_rate(text) == (gbps, lanes, signalling)


@pytest.mark.parametrize("text", [None, "", "unknown"])
def test_no_rate(text):
    assert _rdma.parse_rate(text) is None


def test_case_20_rates_and_layers_by_value_and_not_by_name(recorded, tree):
    for number, line in enumerate(recorded("ibstatus__fw_unknown__gb300__xdr_names.txt").splitlines()):
        name, state, rate = line.split(None, 2)
        ethernet = "NDR" in rate
        tree.rdma(
            name, pci=f"00{number + 10}:01:00.0", state=f"4: {state}", rate=rate,
            link_layer="Ethernet" if ethernet else "InfiniBand", system_guid=f"0000:0000:0000:000{number + 1}",
        )
    devices = by_name(_rdma.read_devices(tree.root))
    assert {name: (device["rate_gbps"], device["transport"]) for name, device in devices.items()} == {
        "ibP16p3s0": (800.0, "InfiniBand"),
        "ibP18p3s0": (800.0, "InfiniBand"),
        "ibP2p3s0": (800.0, "InfiniBand"),
        "ibp3s0": (800.0, "InfiniBand"),
        "roceP22p1s0f0": (400.0, "RoCE"),
    }


def test_case_12_gb10_healthy_pair(recorded, tree):
    tree.gb10_pair()
    devices = _rdma.read_devices(tree.root)
    verbs = _rdma.parse_ibv_devinfo(recorded("ibv_devinfo__fw_28.45.4028__gb10__healthy.txt"))
    _rdma.merge_verbs(devices, verbs)
    facts = _rdma.summarize(devices)
    assert facts["state"] == "ok"
    assert [device["name"] for device in facts["devices"]] == ["rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1"]
    active = {device["name"]: device["netdev"] for device in facts["devices"] if device["state"] == "ACTIVE"}
    assert active == {"rocep1s0f1": "enp1s0f1np1", "roceP2p1s0f1": "enP2p1s0f1np1"}
    shown = links_of(recorded("ibdev2netdev__fw_28.45.4028__gb10__healthy.txt"))
    assert {(device["name"], device["netdev"], "(Up)" if device["state"] == "ACTIVE" else "(Down)") for device in devices} == set(shown)
    assert facts["cages"] == {"p0": ["rocep1s0f0", "roceP2p1s0f0"], "p1": ["rocep1s0f1", "roceP2p1s0f1"]}
    devices = by_name(facts["devices"])
    assert devices["rocep1s0f1"]["twin"] == "roceP2p1s0f1"
    assert devices["roceP2p1s0f1"]["twin"] == "rocep1s0f1"
    up, down = devices["rocep1s0f1"], devices["rocep1s0f0"]
    assert (up["netdev_mtu"], up["expected_active_mtu"], up["active_mtu"], up["max_mtu"]) == (9000, 4096, 4096, 4096)
    # The down port's 1024 is what its interface's 1500 gives: no complaint.
    assert (down["expected_active_mtu"], down["active_mtu"], down["rate_gbps"], down["phys_state"]) == (1024, 1024, None, "Disabled")
    assert up == {
        "name": "rocep1s0f1",
        "port": 1,
        "netdev": "enp1s0f1np1",
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "reason": None,
        "rate_gbps": 200.0,
        "active_width": "4X",
        "active_speed": "50.0 Gbps",
        "link_layer": "Ethernet",
        "transport": "RoCE",
        "netdev_state": "up",
        "carrier": None,
        "link_speed_mbps": 200000,
        "addresses": [],
        "netdev_mtu": 9000,
        "active_mtu": 4096,
        "max_mtu": 4096,
        "expected_active_mtu": 4096,
        "gids": up["gids"],
        "firmware": "28.45.4028",
        "psid": "NVD0000000087",
        "node_guid": "5e0a:1103:0077:1c17",
        "sys_image_guid": "5e0a:1103:0077:1c16",
        "phys_port_name": "p1",
        "cage": "p1",
        "twin": "roceP2p1s0f1",
        "pci_address": "0000:01:00.1",
        "is_virtual_function": False,
        "pcie": {"speed": "32.0 GT/s", "width": 4, "max_speed": None, "max_width": None},
        "counters": {},
    }
    assert [(gid["index"], gid["type"], gid["ipv4"]) for gid in up["gids"]] == [
        (0, "RoCE v1", None), (1, "RoCE v2", None), (2, "RoCE v1", "192.168.100.10"), (3, "RoCE v2", "192.168.100.10"),
    ]


def test_case_12_names_are_case_sensitive(tree, recorded):
    tree.gb10_pair()
    devices = _rdma.read_devices(tree.root)
    _rdma.merge_verbs(devices, _rdma.parse_ibv_devinfo(recorded("ibv_devinfo__fw_28.45.4028__gb10__healthy.txt").replace("P2p", "p2p")))
    assert by_name(devices)["roceP2p1s0f1"]["active_mtu"] is None
    assert by_name(devices)["rocep1s0f1"]["active_mtu"] == 4096


def test_case_13_two_lanes_of_100_are_no_fault(recorded):
    header = "hca_id:\trocep1s0f0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n"
    port = _rdma.parse_ibv_devinfo(header + recorded("ibv_devinfo_v_port__fw_28.45.4028__gb10__wedge.txt"))[0]["ports"][0]
    assert (port["state"], port["phys_state"], port["rate_gbps"]) == ("ACTIVE", "LinkUp", 200.0)
    assert _rdma.port_reason(port["state"], port["phys_state"], "Ethernet", "enp1s0f0np0") is None


def test_case_13c_gid_index_3_is_roce_v2_ipv4(recorded, tree):
    gids = []
    for line in recorded("show_gids__fw_28.45.4028__gb10__index3.txt").splitlines():
        words = line.split()
        gids.append((int(words[2]), words[3], {"v1": "IB/RoCE v1", "v2": "RoCE v2"}[words[-2]], words[-1]))
    tree.netdev("enp1s0f0np0", pci="0000:01:00.0")
    tree.rdma("rocep1s0f0", pci="0000:01:00.0", gids=gids)
    read = _rdma.read_devices(tree.root)[0]["gids"]
    assert [(gid["index"], gid["type"], gid["ipv4"], gid["netdev"]) for gid in read] == [
        (1, "RoCE v2", None, "enp1s0f0np0"), (3, "RoCE v2", "192.168.100.10", "enp1s0f0np0"),
    ]


def test_gid_table_with_a_hole(tree):
    tree.netdev("enp1s0f0np0", pci="0000:01:00.0")
    tree.rdma("rocep1s0f0", pci="0000:01:00.0", gids=[(5, "0000:0000:0000:0000:0000:ffff:a9fe:0102", "RoCE v2", None)])
    assert _rdma.read_devices(tree.root)[0]["gids"] == [
        {"index": 5, "gid": "0000:0000:0000:0000:0000:ffff:a9fe:0102", "type": "RoCE v2", "netdev": None, "ipv4": "169.254.1.2"}
    ]


def test_case_15_trained_link_without_subnet_manager(recorded, tree):
    adapters = _rdma.parse_ibstat(recorded("ibstat__fw_32.47.1088__bluefield3__no_subnet_manager.txt"))
    assert [adapter["name"] for adapter in adapters] == ["mlx5_0", "mlx5_1"]
    assert len({adapter["sys_image_guid"] for adapter in adapters}) == 1
    for adapter in adapters:
        port = adapter["ports"][0]
        assert (port["state"], port["phys_state"], port["base_lid"], port["link_layer"]) == ("DOWN", "LinkUp", 65535, "InfiniBand")
        assert "no subnet manager" in port["reason"]
        assert "wrong link type" in port["reason"]
        assert "the cable is not the cause" in port["reason"]
    tree.rdma("mlx5_0", pci="0000:03:00.0", state="1: DOWN", link_layer="InfiniBand", rate="100 Gb/sec (2X HDR)")
    tree.rdma("mlx5_1", pci="0000:03:00.1", state="1: DOWN", link_layer="InfiniBand", rate="100 Gb/sec (2X HDR)")
    devices = _rdma.read_devices(tree.root)
    assert len(devices) == 2
    assert all("no subnet manager" in device["reason"] and device["rate_gbps"] == 100.0 for device in devices)
    assert devices[0]["expected_active_mtu"] is None


def test_case_16_mixed_adapters(recorded):
    adapters = by_name(_rdma.parse_ibstat(recorded("ibstat__fw_28.34.1002__mt4129_and_bnxt__mixed.txt")))
    assert list(adapters) == ["ibp23s0", "roceo1", "roceo2"]
    assert adapters["roceo1"]["type"] == "Broadcom NetXtreme-C/E RoCE Driver HCA"
    assert adapters["roceo1"]["firmware"] == "226.0.145.0"
    assert adapters["roceo1"]["ports"][0]["rate_gbps"] == 2.5
    assert adapters["ibp23s0"]["ports"][0] == {
        "port": 1, "state": "ACTIVE", "phys_state": "LinkUp", "rate_gbps": 200.0, "base_lid": 2, "link_layer": "InfiniBand",
        "reason": None,
    }


def test_case_16_speed_of_bnxt_comes_from_its_netdev(tree):
    tree.netdev("eno1np0", speed=25000, pci="0000:16:00.0")
    tree.rdma("roceo1", pci="0000:16:00.0", rate="2.5 Gb/sec (1X SDR)", psid=None)
    tree.netdev("eno2np1", speed=-1, pci="0000:16:00.1")
    tree.rdma("roceo2", pci="0000:16:00.1", rate="2.5 Gb/sec (1X SDR)", state="1: DOWN", phys_state="3: Disabled", psid=None)
    devices = by_name(_rdma.read_devices(tree.root))
    assert devices["roceo1"]["rate_gbps"] == 25.0
    assert devices["roceo2"]["rate_gbps"] is None
    assert _rdma.find_cages(list(devices.values())) == {}


def test_case_16b_rdma_link_is_read_by_key(recorded):
    links = by_name(_rdma.parse_rdma_link(recorded("rdma_link__iproute2_unknown__mt4129_and_bnxt__mixed.txt")))
    assert links["ibp23s0"] == {"name": "ibp23s0", "port": 1, "state": "ACTIVE", "phys_state": "LinkUp", "netdev": None}
    assert links["roceo1"]["netdev"] == "eno1np0"
    assert links["roceo2"] == {"name": "roceo2", "port": 1, "state": "DOWN", "phys_state": "Disabled", "netdev": "eno2np1"}


def test_case_16c_rdma_link_without_netdev(recorded):
    links = by_name(_rdma.parse_rdma_link(recorded("rdma_link__iproute2_unknown__mixed_server__no_netdev.txt") + "\nnonsense\n"))
    assert len(links) == 4
    assert links["roceo12399"]["netdev"] is None
    assert links["rocep202s0f1"]["netdev"] == "ens7f1"


def test_case_16c_netdev_in_another_namespace(tree):
    tree.rdma("roceo12399", pci="0000:17:00.0", gids=[(0, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1", "eno12399")])
    device = _rdma.read_devices(tree.root)[0]
    assert (device["netdev"], device["netdev_mtu"], device["expected_active_mtu"], device["phys_port_name"]) == (None, None, None, None)


def test_case_17_irdma_dump(recorded):
    devices = _rdma.parse_ibv_devinfo(recorded("ibv_devinfo_v__fw_1.54__irdma__odd_lines.txt"))
    assert len(devices) == 1
    assert (devices[0]["name"], devices[0]["firmware"], devices[0]["psid"], devices[0]["transport"]) == ("irdma1", "1.54", None, "RoCE")
    port = devices[0]["ports"][0]
    assert (port["state"], port["active_mtu"], port["max_mtu"], port["rate_gbps"]) == ("ACTIVE", 1024, 4096, 100.0)
    assert port["gids"][1] == {"index": 1, "gid": "::ffff:10.20.30.41", "type": "RoCE v2", "ipv4": "10.20.30.41"}
    assert port["gids"][0]["ipv4"] is None


def test_case_18_efa_and_siw(recorded, tree):
    devices = by_name(
        device for text in recorded("ibv_devinfo__fw_0.0.0.0__efa_and_siw.txt").split("---\n") for device in _rdma.parse_ibv_devinfo(text)
    )
    assert (devices["efa_0"]["transport"], devices["efa_0"]["psid"], devices["efa_0"]["ports"][0]["state"]) == ("unspecified", None, None)
    assert devices["siw0"]["transport"] == "iWARP"
    assert devices["siw0"]["ports"][0]["active_mtu"] == 1024
    tree.rdma(
        "efa_0", pci="0000:00:1d.0", state=None, phys_state=None, link_layer=None, node_type="7: unspecified", psid=None,
        system_guid="0000:0000:0000:0000", firmware="0.0.0.0",
    )
    tree.netdev("eth0", mtu=1500)
    tree.rdma(
        "siw0", node_type="4: RNIC", psid=None, firmware="0.0.0", rate="2.5 Gb/sec (1X SDR)",
        gids=[(0, "0200:0000:0000:0000:0000:0000:0000:0000", "IB/RoCE v1", "eth0")],
    )
    facts = _rdma.summarize(_rdma.read_devices(tree.root))
    read = by_name(facts["devices"])
    assert (read["efa_0"]["transport"], read["efa_0"]["state"], read["efa_0"]["cage"]) == ("unspecified", None, None)
    assert "no port state" in read["efa_0"]["reason"]
    assert (read["siw0"]["transport"], read["siw0"]["netdev"], read["siw0"]["expected_active_mtu"]) == ("iWARP", "eth0", None)
    assert (read["siw0"]["pci_address"], read["siw0"]["rate_gbps"]) == (None, 2.5)
    assert facts["cages"] == {}


def test_no_card_is_a_state_of_its_own(tree):
    for made in (False, True):
        if made:
            (tree.path / "sys/class/infiniband").mkdir(parents=True)
        facts = _rdma.summarize(_rdma.read_devices(tree.root))
        assert (facts["devices"], facts["cages"], facts["state"]) == ([], {}, "no_device")
        assert "put the cable in" in facts["reason"]


def test_down_ports_say_why(tree):
    tree.netdev("enp1s0f0np0", pci="0000:01:00.0")
    for name, state, physical, word in (
        ("a", "1: DOWN", "3: Disabled", "no cable is in"),
        ("b", "1: DOWN", "2: Polling", "looks for a signal"),
        ("c", "2: INIT", "5: LinkUp", "bring its network interface up"),
    ):
        tree.rdma(name, state=state, phys_state=physical)
        assert word in by_name(_rdma.read_devices(tree.root))[name]["reason"]
    assert "interface enp1s0f0np0 up" in _rdma.port_reason("DOWN", "LinkUp", "Ethernet", "enp1s0f0np0")


def test_renamed_netdevs_and_devices(tree):
    for pci, netdev, device, port_name in (
        ("0000:01:00.0", "net-aerial00", "mlx5_0", "p0"), ("0002:01:00.0", "net-aerial02", "mlx5_2", "p0"),
    ):
        tree.netdev(netdev, pci=pci, port_name=port_name, mtu=4096)
        tree.rdma(device, pci=pci)
    facts = _rdma.summarize(_rdma.read_devices(tree.root))
    assert [(device["name"], device["netdev"], device["twin"]) for device in facts["devices"]] == [
        ("mlx5_0", "net-aerial00", "mlx5_2"), ("mlx5_2", "net-aerial02", "mlx5_0"),
    ]
    assert facts["cages"] == {"p0": ["mlx5_0", "mlx5_2"]}
    assert facts["devices"][0]["expected_active_mtu"] == 2048


def test_cage_without_port_name_is_the_function_digit(tree):
    tree.netdev("enp1s0f1np1", pci="0000:01:00.1")
    tree.rdma("rocep1s0f1", pci="0000:01:00.1")
    assert _rdma.find_cages(_rdma.read_devices(tree.root)) == {"p1": ["rocep1s0f1"]}


def test_two_adapters_never_share_a_cage(tree):
    for pci, device, guid in (("0000:01:00.0", "mlx5_0", "a"), ("0000:81:00.0", "mlx5_1", "b")):
        tree.netdev(f"net-{device}", pci=pci, port_name="p0")
        tree.rdma(device, pci=pci, system_guid=guid)
    devices = _rdma.read_devices(tree.root)
    assert _rdma.find_cages(devices) == {"p0": ["mlx5_0"], "p0@0000:81:00.0": ["mlx5_1"]}
    assert [device["twin"] for device in devices] == [None, None]


def test_virtual_functions_are_no_ports(tree):
    tree.gb10_pair()
    tree.netdev("enp1s0f0v0", pci="0000:01:00.2", port_name="pf0vf0")
    tree.rdma("rocep1s0f0v0", pci="0000:01:00.2")
    tree.link("sys/devices/pci/0000:01:00.2/physfn", "../0000:01:00.0")
    facts = _rdma.summarize(_rdma.read_devices(tree.root))
    assert len(facts["devices"]) == 5
    function = by_name(facts["devices"])["rocep1s0f0v0"]
    assert (function["is_virtual_function"], function["cage"], function["twin"]) == (True, None, None)
    assert facts["cages"] == {"p0": ["rocep1s0f0", "roceP2p1s0f0"], "p1": ["rocep1s0f1", "roceP2p1s0f1"]}


def test_netdev_among_representors(tree):
    pci = "0000:01:00.0"
    for name in ("aaa_representor", "enp1s0f0np0"):
        tree.netdev(name, pci=pci)
    tree.rdma("rocep1s0f0", pci=pci, gids=[(0, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2", "enp1s0f0np0")])
    assert _rdma.read_devices(tree.root)[0]["netdev"] == "enp1s0f0np0"


def test_netdev_by_port_number(tree):
    pci = "0000:01:00.0"
    for number, name in enumerate(("zeta", "alpha")):
        tree.netdev(name, pci=pci)
        tree.write(f"sys/devices/pci/{pci}/net/{name}/dev_port", f"{number}\n")
    tree.rdma("mlx4_0", pci=pci)
    tree.rdma("mlx4_0b", pci=pci, port=2)
    assert [device["netdev"] for device in _rdma.read_devices(tree.root)] == ["zeta", "alpha"]


def test_pci_address_from_the_path(tree):
    tree.netdev("enp1s0f0np0", pci="0000:01:00.0")
    tree.rdma("rocep1s0f0", pci="0000:01:00.0")
    (tree.path / "sys/devices/pci/0000:01:00.0/uevent").unlink()
    assert _rdma.read_devices(tree.root)[0]["pci_address"] == "0000:01:00.0"


def test_infiniband_gids_are_no_roce(tree):
    tree.rdma("ibp23s0", pci="0000:17:00.0", link_layer="InfiniBand", gids=[(0, "fe80:0000:0000:0000:5ea2:e103:0001:7f3c", "IB/RoCE v1", None)])
    device = _rdma.read_devices(tree.root)[0]
    assert (device["transport"], device["gids"][0]["type"]) == ("InfiniBand", "InfiniBand")


@pytest.mark.parametrize("parser", [_rdma.parse_ibv_devinfo, _rdma.parse_ibstat, _rdma.parse_rdma_link])
@pytest.mark.parametrize("text", ["", "\n\n", "No IB devices found\n", "port: 1\nstate: X\n", ":::\n\t:\n", "Port 1:\n\tState: Active\n"])
def test_nonsense_is_no_device(parser, text):
    assert parser(text) == []


@pytest.mark.parametrize(
    "parser, name",
    [
        (_rdma.parse_ibv_devinfo, "ibv_devinfo__fw_28.45.4028__gb10__healthy.txt"),
        (_rdma.parse_ibv_devinfo, "ibv_devinfo_v__fw_1.54__irdma__odd_lines.txt"),
        (_rdma.parse_ibstat, "ibstat__fw_28.34.1002__mt4129_and_bnxt__mixed.txt"),
        (_rdma.parse_rdma_link, "rdma_link__iproute2_unknown__mt4129_and_bnxt__mixed.txt"),
    ],
)
def test_a_cut_output_never_breaks(recorded, parser, name):
    text = recorded(name)
    for end in range(0, len(text), 7):
        assert isinstance(parser(text[:end]), list)


def read(tree, answers=None):
    """Facts of the subset, and what was not read."""
    unread = []
    facts = _rdma.read_rdma(tree.root, answers or {}, lambda *entry: unread.append(entry))
    return facts, unread


def said(output, status=0, error=""):
    return types.SimpleNamespace(status=status, output=output, error=error, seconds=0.0)


def pci(tree, address, vendor="0x15b3", kind="0x020000", physical=None):
    tree.write(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
    tree.write(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")
    if physical:
        tree.link(f"sys/bus/pci/devices/{address}/physfn", f"../{physical}")


def test_case_13_the_lanes_of_the_kernel_and_of_ibv_devinfo_are_the_same(tree):
    tree.rdma("rocep1s0f0", pci="0000:01:00.0", rate="200 Gb/sec (2X NDR)")
    device = _rdma.read_devices(tree.root)[0]
    assert (device["active_width"], device["active_speed"], device["rate_gbps"]) == ("2X", "100.0 Gbps", 200.0)


def test_functions_are_counted_on_the_bus(tree):
    assert (read(tree)[0]["nic_functions"], read(tree)[0]["virtual_functions"]) == (None, 0)
    pci(tree, "0007:01:00.0", vendor="0x10ec")
    # A network card that has left the bus for want of a cable is no function.
    assert (read(tree)[0]["nic_functions"], read(tree)[0]["state"]) == (0, "no_device")
    for address in ("0000:01:00.0", "0000:01:00.1", "0002:01:00.0", "0002:01:00.1"):
        pci(tree, address)
    pci(tree, "0000:01:00.2", physical="0000:01:00.0")
    pci(tree, "0000:02:00.0", kind="0x060400")
    assert (read(tree)[0]["nic_functions"], read(tree)[0]["virtual_functions"]) == (4, 1)


def test_hotplug(tree):
    assert read(tree)[0]["hotplug"] == {"installed": False, "enabled": False}
    tree.write("usr/lib/udev/rules.d/90-mtk-hotplug.rules", "")
    assert read(tree)[0]["hotplug"] == {"installed": True, "enabled": False}
    tree.write("etc/nvidia/cx7-hotplug-enabled", "")
    assert read(tree)[0]["hotplug"] == {"installed": True, "enabled": True}


def test_counters_of_faults(tree):
    tree.rdma("rocep1s0f0", pci="0000:01:00.0")
    port = "sys/devices/pci/0000:01:00.0/infiniband/rocep1s0f0/ports/1"
    counters = {
        "counters/port_rcv_errors": "3", "counters/port_xmit_discards": "5", "counters/link_downed": "1", "counters/port_rcv_data": "99",
        "counters/symbol_error": "N/A (no PMA)", "hw_counters/out_of_sequence": "7", "hw_counters/local_ack_timeout_err": "2",
        "hw_counters/lifespan": "10", "hw_counters/rx_write_requests": "8", "hw_counters/roce_adp_retrans": "4",
    }
    for name, text in counters.items():
        tree.write(f"{port}/{name}", f"{text}\n")
    assert _rdma.read_devices(tree.root)[0]["counters"] == {
        "link_downed": 1, "port_rcv_errors": 3, "port_xmit_discards": 5, "local_ack_timeout_err": 2, "out_of_sequence": 7, "roce_adp_retrans": 4,
    }


def test_pcie_interface_and_addresses(tree, recorded):
    tree.gb10_pair()
    home = "sys/devices/pci/0000:01:00.1"
    for name, text in {
        "current_link_width": "2", "max_link_width": "4", "max_link_speed": "32.0 GT/s PCIe", "net/enp1s0f1np1/carrier": "1",
        "net/enp1s0f1np1/operstate": "up",
    }.items():
        tree.write(f"{home}/{name}", f"{text}\n")
    facts, unread = read(tree, {"addresses": said(recorded("ip_address__iproute2_6.1.0__gb10__rails.json"))})
    device = by_name(facts["devices"])["rocep1s0f1"]
    assert device["pcie"] == {"speed": "32.0 GT/s", "width": 2, "max_speed": "32.0 GT/s", "max_width": 4}
    assert (device["carrier"], device["netdev_state"], device["link_speed_mbps"]) == (True, "up", 200000)
    assert "192.168.100.10/24" in device["addresses"]
    assert by_name(facts["devices"])["rocep1s0f0"]["link_speed_mbps"] is None
    assert unread == []


def test_a_state_that_is_none_is_told(tree):
    tree.rdma("rocep1s0f0", pci="0000:01:00.0", state="9: SLEEPY")
    facts, unread = read(tree)
    assert facts["devices"][0]["state"] is None
    assert unread == [("/sys/class/infiniband/rocep1s0f0/ports/1/state", "not_understood", "9: SLEEPY")]


TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.one_of(
            st.sampled_from((
                "hca_id:", "\trocep1s0f0\n", "port:", "\t1\n", "state:", "PORT_ACTIVE (4)", "active_mtu:", "4096 (5)", "GID[", "0]:", "fe80::1, RoCE v2\n",
                "CA '", "'\n", "Port 1:\n", "Rate: ", "200 Gb/sec (0X HDR)", "link ", "a/1 ", "state ACTIVE ", "physical_state ", "9" * 5000, "\u0660", "\x00",
                "::ffff:1.2.3.4", "0000:0000:0000:0000:0000:ffff:c0a8:640a", "[", '{"ifname": "a", "addr_info": [{"local": 1, "prefixlen": []}]}',
                "]", "\n", " ",
            )),
            st.text(max_size=4),
        ),
        max_size=30,
    ).map("".join),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TEXTS)
def test_no_text_makes_a_parser_raise(text):
    for parser in (
        _rdma.parse_ibv_devinfo, _rdma.parse_ibstat, _rdma.parse_rdma_link, _rdma.parse_rate, _rdma.gid_ipv4,
    ):
        json.dumps(parser(text))
    _rdma.port_reason(text, text, text, text)
    with contextlib.suppress(ValueError):
        _rdma.merge_addresses([{"netdev": "a"}], text)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_file_makes_the_reader_raise_and_what_it_does_not_read_is_told(data):
    with tempfile.TemporaryDirectory() as folder:
        device = pathlib.Path(folder, "sys/class/infiniband/rocep1s0f0")
        for name in (
            "fw_ver", "board_id", "node_type", "node_guid", "sys_image_guid", "device/uevent", "device/vendor", "device/class", "device/current_link_speed",
            "device/current_link_width", "device/net/a/dev_port", "device/net/a/phys_port_name", "ports/1/state", "ports/1/phys_state", "ports/1/rate",
            "ports/1/link_layer", "ports/1/gids/0", "ports/1/gid_attrs/types/0", "ports/1/gid_attrs/ndevs/0", "ports/1/hw_counters/out_of_buffer",
        ):
            (device / name).parent.mkdir(parents=True, exist_ok=True)
            (device / name).write_text(data.draw(TEXTS), encoding="utf-8", errors="replace")
        unread = []
        verbs = data.draw(TEXTS)
        facts = _rdma.read_rdma(folder, {"verbs": said(verbs), "addresses": said(data.draw(TEXTS))}, lambda *entry: unread.append(entry))
        json.dumps(facts)
        # A number of MTU that is not there is named.
        if not _rdma.parse_ibv_devinfo(verbs):
            assert "ibv_devinfo" in [entry[0] for entry in unread]
