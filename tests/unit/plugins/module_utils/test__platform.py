# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import hmac
import json
import os
import types

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _platform

OF_FILES = (
    "vendor", "product", "product_family", "board", "bios_version", "bios_date", "is_spark", "oem", "dgx", "kernel", "architecture", "os", "cpus",
    "memory_total_bytes", "memory_available_bytes", "swap_total_bytes", "boot_id", "renderer",
)
UNAME = types.SimpleNamespace(release="6.17.0-1029-nvidia", machine="aarch64")


def read(tree, cpus=20):
    """Platform facts of files alone."""
    return _platform.read_platform(tree.root, {}, UNAME, cpus, print, space=lambda path: None, clock=lambda: None, now=lambda: 1.0)


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
    platform = read(tree)
    assert {key: platform[key] for key in OF_FILES} == {
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
    platform = read(tree, cpus=None)
    known = {key: platform[key] for key in OF_FILES if platform[key] not in (None, False)}
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
    assert (read(tree)["is_spark"], read(tree)["oem"]) == (False, None)
    tree.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x15b3\n")
    tree.write("sys/bus/pci/devices/0000:01:00.0/device", "0x1021\n")
    assert not read(tree)["is_spark"]
    tree.write("sys/bus/pci/devices/000f:01:00.0/vendor", "0x10de\n")
    tree.write("sys/bus/pci/devices/000f:01:00.0/device", "0x2e12\n")
    platform = read(tree)
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


@pytest.mark.parametrize("text", ["{", "{}", "Object \"-j\" is unknown", "3", "[" * 100000])
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


class Notes(list):
    def __call__(self, source, reason, evidence):
        self.append((source, reason, evidence))


@pytest.fixture
def notes():
    return Notes()


def answer(output="", status=0):
    return types.SimpleNamespace(status=status, output=output, error="", seconds=0.1)


def test_odd_values_of_interfaces():
    link = [{"ifname": "a", "flags": 3, "addr_info": {"local": 1}}, {"ifname": ["b"]}, {"ifname": "c", "addr_info": ["x", {"local": "::1", "prefixlen": 128}]}]
    found = _platform.parse_addresses(json.dumps(link))
    assert [(interface["name"], interface["carrier"], interface["addresses"]) for interface in found] == [("a", None, []), ("c", None, ["::1/128"])]


@pytest.mark.parametrize("given, noted", [(None, 0), (answer("odd"), 1), (answer("[]", 255), 0), (answer("", 124), 0)])
def test_interfaces_without_an_answer_are_those_of_sys(tree, notes, given, noted):
    tree.netdev("eth0")
    assert [interface["name"] for interface in _platform.read_interfaces(tree.root, given, notes)] == ["eth0"]
    assert notes == [("ip -j address", "not_understood", "odd")][:noted]


def test_interfaces_of_an_answer(tree, notes, recorded):
    interfaces = _platform.read_interfaces(tree.root, answer(recorded("ip_address__iproute2_6.1.0__gb10__rails.json")), notes)
    assert [interface["name"] for interface in interfaces] == ["enP7s7", "enp1s0f0np0", "enp1s0f1np1", "lo"]
    assert _platform.read_interfaces(tree.root, answer("[]"), notes) == []


def test_the_clock_is_read_and_not_set():
    assert _platform.read_clock() in (True, False, None)


@pytest.mark.parametrize("state, largest_error, kept", [(0, 5000, True), (5, 5000, True), (5, 16000000, False), (-1, 5000, None)])
def test_a_clock_counts_as_kept_by_its_error(monkeypatch, state, largest_error, kept):
    class Library:
        def adjtimex(self, timex):
            assert timex.raw[:4] == b"\0\0\0\0"
            _platform.struct.pack_into("@Illl", timex, 0, 0, 1, 2, largest_error)
            return state

    monkeypatch.setattr(_platform.ctypes, "CDLL", lambda name: Library())
    assert _platform.read_clock() is kept


def test_a_clock_that_nobody_can_ask(monkeypatch):
    monkeypatch.setattr(_platform.ctypes, "CDLL", lambda name: object())
    assert _platform.read_clock() is None


def test_machine_id_is_told_by_a_digest_only(tree):
    assert _platform.machine_id_digest(tree.root) is None
    tree.write("etc/machine-id", "uninitialized\n")
    assert _platform.machine_id_digest(tree.root) is None
    machine = "0123456789abcdef0123456789abcdef"
    tree.write("etc/machine-id", f"{machine}\n")
    assert _platform.machine_id_digest(tree.root) == hmac.new(machine.encode(), b"gb10.fleet", hashlib.sha256).hexdigest()[:12]


def test_probes_of_names(tree):
    assert _platform.more_probes(tree.root, []) == {}
    tree.write("etc/hostname", "spark-a\n")
    tree.write("proc/sys/kernel/hostname", "spark-a.lan\n")
    assert _platform.more_probes(tree.root, ["spark-b", "-x", "a b", "", "spark-b", "spark-a.lan", "x" * 300]) == {
        "name_spark-a.lan": ("getent", "ahostsv4", "spark-a.lan"), "name_spark-b": ("getent", "ahostsv4", "spark-b"),
    }


@pytest.mark.parametrize(
    "given, addresses",
    [
        (answer("192.168.100.11  STREAM spark-b\n192.168.100.11  DGRAM  \n192.168.101.11  RAW\nodd\n\n"), ["192.168.100.11", "192.168.101.11"]),
        (answer("", 2), []),
        (answer("", 124), None),
        (answer("", 127), None),
        (None, None),
    ],
)
def test_resolved_names(given, addresses):
    assert _platform.resolved(given) == addresses


MOUNTS = (
    "/dev/root / ext4 rw 0 0\nsysfs /sys sysfs rw 0 0\n/dev/nvme0n1p3 /var/lib ext4 rw 0 0\n/dev/x /var/lib xfs rw 0 0\n"
    "tmpfs /opt/a\\040b tmpfs rw 0 0\nodd\n"
)


def test_mounts():
    assert _platform.parse_mounts(MOUNTS) == {"/": "ext4", "/sys": "sysfs", "/var/lib": "xfs", "/opt/a b": "tmpfs"}


def test_disks_of_paths_that_are_not_there_yet(tree):
    tree.write("proc/self/mounts", MOUNTS)
    tree.write("var/lib/x", "")
    tree.write("boot/x", "")
    tree.link("tmp", "/var/lib")
    asked = []
    space = {"total_bytes": 10, "free_bytes": 5, "inodes_free": 3, "inodes_total": 4}
    disks = _platform.read_disks(tree.root, lambda path: asked.append(os.path.relpath(path, tree.root)) or space)
    assert [(disk["path"], disk["exists_at"], disk["mount"], disk["type"], disk["free_bytes"]) for disk in disks] == [
        ("/", "/", "/", "ext4", 5), ("/boot", "/boot", "/", "ext4", 5), ("/opt/gb10", "/", "/", "ext4", 5), ("/var/lib/gb10", "/var/lib", "/var/lib", "xfs", 5),
        ("/tmp", "/tmp", "/var/lib", "xfs", 5),
    ]
    assert asked == [".", "boot", ".", "var/lib", "var/lib"]


def test_disks_that_tell_nothing(tree):
    disk = _platform.read_disks(tree.root, lambda path: None)[0]
    assert disk == {"path": "/", "exists_at": "/", "mount": None, "type": None, **dict.fromkeys(("total_bytes", "free_bytes", "inodes_free", "inodes_total"))}
    assert _platform.disk_space(f"{tree.root}/none") is None
    space = _platform.disk_space(tree.root)
    assert space["total_bytes"] >= space["free_bytes"] > 0
    assert space["inodes_total"] >= space["inodes_free"] >= 0


def test_platform_facts_of_a_node(tree, notes):
    tree.write("etc/hostname", "spark-a\n")
    tree.write("etc/fastos-release", 'NAME="DGX SPARK FASTOS"\nVERSION="1.91.51"\n')
    write_dmi(tree, bios_version="5.36_0ACUM018")
    firmware = {"Devices": [{"Name": "System Firmware", "Guid": ["g"], "Plugin": "uefi_capsule", "Version": "5.36_0ACUM023"}]}
    answers = {
        "fwupd_devices": answer(json.dumps(firmware)), "addresses": answer("[]"), "name_spark-a": answer("127.0.1.1 STREAM spark-a\n"),
        "name_spark-b": answer("", 2),
    }
    facts = _platform.read_platform(
        tree.root, answers, UNAME, 20, notes, names=["spark-b", "spark-c"], space=lambda path: None, clock=lambda: True, now=lambda: 1796079242.5,
    )
    assert facts["bios"] == {"running": "5.36_0ACUM018", "installed": "5.36_0ACUM023", "staged": True}
    assert (facts["hostname"], facts["own_address"], facts["fastos_version"]) == ("spark-a", ["127.0.1.1"], "1.91.51")
    assert facts["names"] == {"spark-b": [], "spark-c": None}
    assert facts["clock"] == {"synchronized": True, "epoch": 1796079242.5}
    assert (facts["firmware"]["state"], facts["interfaces"], [disk["path"] for disk in facts["filesystems"]]) == ("ok", [], list(_platform.DISKS))
    assert notes == []


def test_platform_facts_of_nothing(tree, notes):
    facts = _platform.read_platform(tree.root, {}, UNAME, None, notes, space=lambda path: None, clock=lambda: None, now=lambda: 1.0)
    assert (facts["hostname"], facts["own_address"], facts["machine_id_digest"], facts["fastos_version"], facts["names"]) == (None, None, None, None, {})
    assert (facts["firmware"]["state"], facts["bios"]) == ("absent", {"running": None, "installed": None, "staged": None})
    assert notes == []
