# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import types

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _platform

UNAME = types.SimpleNamespace(release="6.17.0-1029-nvidia", machine="aarch64")


def write_dmi(tree, **texts):
    for name, text in texts.items():
        tree.write(f"sys/class/dmi/id/{name}", f"{text}\n")


def test_assignments():
    text = "# comment\nA=1\nA=\"2\"\nB='x y'\nC=\nD=\"\nnot a line\n1X=3\n"
    assert _platform.parse_assignments(text) == {"A": ["1", "2"], "B": ["x y"], "C": [""], "D": ['"']}
    assert _platform.parse_assignments(None) == {}


@pytest.mark.parametrize(
    "name, expected",
    [
        (
            "dgx-release__dgx_os_7.5.0__gb10.txt",
            {"name": "DGX Spark", "pretty_name": "NVIDIA DGX Spark", "platform": "DGX Server for KVM", "ota_version": "7.5.0",
             "build_version": "7.2.3"},
        ),
        (
            "dgx-release__dgx_os_7.4.0__hp_zgx__unquoted.txt",
            {"name": "DGX Spark", "pretty_name": "NVIDIA DGX Spark", "platform": "HP ZGX Nano G1n AI Station", "ota_version": "7.4.0",
             "build_version": "7.2.3"},
        ),
    ],
)
def test_dgx_release_takes_the_last_update_and_hides_the_serial(recorded, tree, name, expected):
    tree.write("etc/dgx-release", recorded(name))
    assert _platform.read_dgx_release(tree.root) == expected


def test_platform_of_a_spark(recorded, tree):
    tree.write("etc/dgx-release", recorded("dgx-release__dgx_os_7.5.0__gb10.txt"))
    tree.write("etc/os-release", 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n')
    tree.write("proc/meminfo", "MemTotal:       127600000 kB\nMemAvailable:   118755328 kB\nSwapTotal:      16777212 kB\nHugePages_Total: 0\n")
    tree.write("proc/sys/kernel/random/boot_id", "9a1f7c1e-5a3c-4a51-9f0e-6a1f2c3d4e5f\n")
    write_dmi(
        tree, sys_vendor="NVIDIA", product_name="NVIDIA_DGX_Spark", product_family="DGX Spark", board_name="P4242",
        bios_version="5.36_0ACUM023", bios_date="12/01/2025", product_serial="secret",
    )
    platform = _platform.read_platform(tree.root, UNAME, 20)
    assert platform == {
        "vendor": "NVIDIA",
        "product": "NVIDIA_DGX_Spark",
        "product_family": "DGX Spark",
        "board": "P4242",
        "bios_version": "5.36_0ACUM023",
        "bios_date": "12/01/2025",
        "is_spark": True,
        "oem": "nvidia",
        "dgx": platform["dgx"],
        "kernel": "6.17.0-1029-nvidia",
        "architecture": "aarch64",
        "os": {"id": "ubuntu", "version_id": "24.04", "pretty_name": "Ubuntu 24.04.3 LTS"},
        "cpus": 20,
        "memory_total_bytes": 127600000 * 1024,
        "memory_available_bytes": 118755328 * 1024,
        "swap_total_bytes": 16777212 * 1024,
        "boot_id": "9a1f7c1e-5a3c-4a51-9f0e-6a1f2c3d4e5f",
        "renderer": None,
    }


def test_platform_of_nothing(tree):
    platform = _platform.read_platform(tree.root, UNAME, None)
    known = {key: value for key, value in platform.items() if value not in (None, False)}
    assert known == {"dgx": dict.fromkeys(platform["dgx"]), "os": dict.fromkeys(platform["os"]), "kernel": UNAME.release, "architecture": "aarch64"}


@pytest.mark.parametrize(
    "vendor, oem",
    [
        ("NVIDIA", "nvidia"),
        ("ASUSTeK COMPUTER INC.", "asus"),
        ("GIGABYTE", "gigabyte"),
        ("MS-C931", "msi"),
        ("LENOVO", "lenovo"),
        ("Dell Inc.", "dell"),
        ("HP", "hp"),
        ("Acer", "acer"),
        ("QEMU", None),
        (None, None),
    ],
)
def test_oems(vendor, oem):
    assert _platform.oem_name(vendor) == oem


def test_spark_by_pci_and_not_by_dmi(tree):
    write_dmi(tree, sys_vendor="ASUSTeK COMPUTER INC.", product_name="GX10")
    assert (_platform.read_platform(tree.root, UNAME, 20)["is_spark"], _platform.read_platform(tree.root, UNAME, 20)["oem"]) == (False, None)
    tree.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x15b3\n")
    tree.write("sys/bus/pci/devices/0000:01:00.0/device", "0x1021\n")
    assert not _platform.read_platform(tree.root, UNAME, 20)["is_spark"]
    tree.write("sys/bus/pci/devices/000f:01:00.0/vendor", "0x10de\n")
    tree.write("sys/bus/pci/devices/000f:01:00.0/device", "0x2e12\n")
    platform = _platform.read_platform(tree.root, UNAME, 20)
    assert (platform["is_spark"], platform["oem"]) == (True, "asus")


def test_spark_by_gpu_name():
    for name, expected in (("NVIDIA H200", (False, None)), ("NVIDIA GB10", (True, "msi"))):
        platform = {"is_spark": False, "oem": None, "vendor": "MS-C931"}
        _platform.confirm_spark(platform, {"devices": [{"name": name}]})
        assert (platform["is_spark"], platform["oem"]) == expected


def test_addresses(recorded, tree):
    tree.link("sys/class/net/enp1s0f1np1", "../../devices/enp1s0f1np1")
    tree.link("sys/devices/enp1s0f1np1/device/driver", "../../../bus/pci/drivers/mlx5_core")
    tree.write(
        "proc/net/route",
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "enP7s7\t00000000\t011E140A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
        "enp1s0f1np1\t0064A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
    )
    interfaces = _platform.describe_interfaces(tree.root, _platform.parse_addresses(recorded("ip_address__iproute2_6.1.0__gb10__rails.json")))
    assert [interface["name"] for interface in interfaces] == ["enP7s7", "enp1s0f0np0", "enp1s0f1np1", "lo"]
    assert interfaces[2] == {
        "name": "enp1s0f1np1", "mac": "4c:bb:47:00:00:01", "mtu": 1500, "state": "up", "carrier": True,
        "addresses": ["192.168.100.10/24"], "driver": "mlx5_core", "default_route": False,
    }
    assert (interfaces[1]["carrier"], interfaces[1]["state"], interfaces[1]["driver"]) == (False, "down", None)
    assert interfaces[3]["addresses"] == ["127.0.0.1/8", "::1/128"]
    assert [interface["default_route"] for interface in interfaces] == [True, False, False, False]


def test_default_route_of_ipv6(tree):
    zeros = "0" * 32
    tree.write("proc/net/route", "Iface\tDestination\n")
    tree.write(
        "proc/net/ipv6_route",
        f"{zeros} 00 {zeros} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003 enP7s7\n"
        f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200201 lo\n"
        f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00000000 down0\n"
        f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 zz odd0\n",
    )
    assert _platform.default_route_interfaces(tree.root) == {"enP7s7"}


@pytest.mark.parametrize("text", ["{", "{}", "Object \"-j\" is unknown", "3"])
def test_addresses_that_are_none(text):
    with pytest.raises(ValueError):
        _platform.parse_addresses(text)


def test_links_without_ip(tree):
    tree.netdev("enp1s0f0np0", mtu=9000)
    tree.write("sys/devices/virtual/net/enp1s0f0np0/carrier", "1\n")
    tree.write("sys/devices/virtual/net/enp1s0f0np0/address", "4c:bb:47:00:00:00\n")
    tree.write("sys/class/net/bonding_masters", "\n")
    assert _platform.read_links(tree.root) == [
        {"name": "enp1s0f0np0", "mac": "4c:bb:47:00:00:00", "mtu": 9000, "state": "up", "carrier": True, "addresses": []}
    ]


@pytest.mark.parametrize(
    "text, renderer",
    [
        ("network:\n  version: 2\n  renderer: NetworkManager\n", "NetworkManager"),
        ("# first\n\nnetwork:\n    renderer: \"networkd\"  # here\n    version: 2\n", "networkd"),
        ("network: {version: 2, renderer: NetworkManager}\n", "NetworkManager"),
        ("network:\n  ethernets:\n    eth0:\n      renderer: NetworkManager\n", None),
        ("network:\n  version: 2\n  #renderer: networkd\n", None),
        ("other:\n  renderer: networkd\n", None),
        ("", None),
    ],
)
def test_netplan_renderer(text, renderer):
    assert _platform.netplan_renderer(text) == renderer


def test_last_netplan_file_wins(tree):
    tree.write("etc/netplan/00-installer-config.yaml", "network:\n  renderer: NetworkManager\n")
    assert _platform.read_renderer(tree.root) == "NetworkManager"
    tree.write("lib/netplan/99-vendor.yaml", "network:\n  renderer: networkd\n")
    assert _platform.read_renderer(tree.root) == "networkd"
    tree.write("etc/netplan/99-vendor.yaml", "network:\n  version: 2\n")
    assert _platform.read_renderer(tree.root) == "NetworkManager"


def test_netplan_without_renderer_is_networkd(tree):
    tree.write("etc/netplan/50.yaml", "network:\n  version: 2\n")
    tree.write("etc/netplan/README", "")
    assert _platform.read_renderer(tree.root) == "networkd"


def test_renderer_where_netplan_cannot_be_read(tree, monkeypatch):
    path = str(tree.write("etc/netplan/00-installer-config.yaml", "network:\n  renderer: NetworkManager\n"))
    real = os.open
    monkeypatch.setattr(os, "open", lambda name, *rest: real("/nonexistent" if name == path else name, *rest))
    assert _platform.read_renderer(tree.root) is None
    tree.write("run/NetworkManager/conf.d/netplan.conf", "")
    assert _platform.read_renderer(tree.root) == "NetworkManager"
    tree.write("run/systemd/network/10-netplan-eth0.network", "")
    assert _platform.read_renderer(tree.root) == "networkd"


def test_an_interface_that_is_not_up_has_no_known_carrier(tree):
    link = {"ifname": "eth0", "flags": ["BROADCAST"], "operstate": "DOWN"}
    assert _platform.parse_addresses(json.dumps([link]))[0]["carrier"] is None
    tree.netdev("eth0")
    assert _platform.read_links(tree.root)[0]["carrier"] is None
