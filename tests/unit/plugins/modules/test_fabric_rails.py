# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _fabric, _node_files
from ansible_collections.gb10.fleet.plugins.module_utils._lock import locked
from ansible_collections.gb10.fleet.plugins.modules import fabric_rails

A, B, MANAGEMENT = "enp1s0f0np0", "enP2p1s0f0np0", "enP7s7"
RAILS = [
    {"netdev": A, "device": "rocep1s0f0", "address": "192.168.100.10", "prefix": 24},
    {"netdev": B, "device": "roceP2p1s0f0", "address": "192.168.101.10", "prefix": 24},
]
HOSTS = [{"address": "192.168.100.11", "names": ["spark-b-rail0"]}]


class Node:
    """A node whose networkd or NetworkManager does what the netplan files say, with `broken` links that never come up."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = []
        self.broken = []
        self.failing = None
        self.status = 1
        self.renderer = "networkd"
        self.generated = ""
        self.links = {
            A: {"mtu": 1500, "addresses": [], "up": False},
            B: {"mtu": 1500, "addresses": ["10.5.5.5/24"], "up": True},
            MANAGEMENT: {"mtu": 1500, "addresses": ["10.20.30.7/24"], "up": True},
        }

    def run(self, argv, **options):
        assert options["environ_update"] == {"LANGUAGE": "C", "LC_ALL": "C"}
        assert argv[:3] == ["/usr/bin/timeout", "-k", "5"]
        limit, argv = argv[3], [os.path.basename(argv[4])] + argv[5:]
        assert limit == ("67" if argv[0] == "nmcli" and argv[2] == "7" else "60")
        self.calls.append(" ".join(argv))
        if self.failing and self.calls[-1].startswith(self.failing):
            return self.status, "", f"{argv[0]}: no\nsuch luck"
        if argv[:3] == ["ip", "-j", "address"]:
            return 0, json.dumps([self._as_ip(name, link) for name, link in self.links.items()]), ""
        if argv[0] == "ip":
            self._ip(argv[1:])
        elif argv[:2] == ["netplan", "get"]:
            return 0, f"{self.renderer}\n", ""
        elif argv[:2] == ["netplan", "generate"]:
            path = self.folder / "60-gb10-fabric.yaml"
            self.generated = path.read_text() if path.exists() else ""
        elif argv[0] == "networkctl" and argv[1] == "reconfigure":
            self._apply(argv[2])
        elif argv[0] == "nmcli" and "up" in argv:
            self._apply(argv[-1])
        return 0, "", ""

    def _apply(self, name):
        rail = next((part for part in self.generated.split("    en") if f"en{part}".startswith(f"{name}:")), None)
        if rail is None or name in self.broken:
            return
        self.links[name]["up"] = True
        self.links[name]["mtu"] = int(rail.partition("mtu: ")[2].partition("\n")[0])
        address = rail.partition("addresses: [")[2].partition("]")[0]
        if address not in self.links[name]["addresses"]:
            self.links[name]["addresses"].append(address)

    def _ip(self, words):
        link = self.links[words[words.index("dev") + 1]]
        if words[:2] == ["address", "del"]:
            link["addresses"].remove(words[2])
        elif words[:2] == ["address", "add"]:
            link["addresses"].append(words[2])
        elif "mtu" in words:
            link["mtu"] = int(words[-1])
        elif words[-1] == "down":
            link["up"] = False

    @staticmethod
    def _as_ip(name, link):
        flags = ["BROADCAST", "UP", "LOWER_UP"] if link["up"] else ["BROADCAST"]
        info = [{"local": address.split("/")[0], "prefixlen": int(address.split("/")[1])} for address in link["addresses"]]
        info.append({"local": "fe80::1", "prefixlen": 64})
        return {"ifname": name, "flags": flags, "mtu": link["mtu"], "operstate": "UP" if link["up"] else "DOWN", "addr_info": info}


@pytest.fixture(name="node")
def node_fixture(tmp_path, monkeypatch):
    node = Node(tmp_path)
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    monkeypatch.setattr(_fabric, "NETPLAN_PATH", str(tmp_path / "60-gb10-fabric.yaml"))
    monkeypatch.setattr(fabric_rails, "HOSTS_PATH", str(tmp_path / "hosts"))
    monkeypatch.setattr(_node_files, "BACKUP_FOLDER", str(tmp_path / "backup"))
    monkeypatch.setattr(_node_files, "LOCK_FOLDER", str(tmp_path))
    monkeypatch.setattr(_node_files, "LOCK_SECONDS", 0)
    monkeypatch.setattr(fabric_rails, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda module, name, **options: f"/usr/bin/{name}")
    monkeypatch.setattr(AnsibleModule, "run_command", node.run)
    return node


@pytest.fixture(name="run")
def run_fixture(capsys):
    def run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit):
            fabric_rails.main()
        return json.loads(capsys.readouterr().out)

    return run


def state(node):
    return json.loads(json.dumps(node.links)), {path.name: path.read_bytes() for path in node.folder.iterdir() if path.is_file()}


def test_rails_are_set_up_once(node, run):
    before = state(node)
    check = run(rails=RAILS, hosts=HOSTS, _ansible_check_mode=True, _ansible_diff=True)
    assert state(node) == before
    first = run(rails=RAILS, hosts=HOSTS, _ansible_diff=True)
    assert check == first
    assert first["activated"] == [A, B]
    assert first["changed_paths"] == [str(node.folder / "60-gb10-fabric.yaml"), str(node.folder / "hosts")]
    assert first["renderer"] == "networkd"
    assert node.links[A] == {"mtu": 9000, "addresses": ["192.168.100.10/24"], "up": True}
    assert stat.S_IMODE(os.stat(node.folder / "60-gb10-fabric.yaml").st_mode) == 0o600
    assert "spark-b-rail0" in (node.folder / "hosts").read_text()
    node.calls.clear()
    second = run(rails=RAILS, hosts=HOSTS)
    assert (second["changed"], second["activated"], second["diff"]) == (False, [], [])
    assert node.calls == ["ip -j address show", "netplan get network.renderer"]


def test_only_the_rails_are_touched(node, run):
    run(rails=RAILS)
    run(state="absent")
    assert not [call for call in node.calls if MANAGEMENT in call or "netplan apply" in call]


def test_absent_gives_everything_back(node, run):
    before = state(node)
    run(rails=RAILS, hosts=HOSTS)
    check = run(state="absent", _ansible_check_mode=True)
    result = run(state="absent")
    assert check == {**result, "renderer": "auto"}
    assert result["changed"] is True
    assert sorted(result["activated"]) == sorted([A, B])
    assert state(node) == before
    assert run(state="absent")["changed"] is False
    assert not (node.folder / "backup").exists()


@pytest.mark.parametrize("command", ["netplan generate", "networkctl reload", "ip link set"])
def test_a_teardown_that_failed_is_finished_by_the_next(node, run, command):
    before = state(node)
    run(rails=RAILS, hosts=HOSTS)
    node.failing = command
    assert run(state="absent")["msg"].startswith(f"fabric_rails: {command}")
    assert node.links[A]["mtu"] == 9000
    node.failing = None
    node.calls.clear()
    check = run(state="absent", _ansible_check_mode=True)
    result = run(state="absent")
    assert check == {**result, "renderer": "auto"}
    assert sorted(result["activated"]) == sorted([A, B])
    assert "netplan generate" in node.calls
    assert state(node) == before
    assert run(state="absent")["changed"] is False
    assert not (node.folder / "backup").exists()


def test_rails_that_come_again_after_a_teardown_that_failed_can_still_be_given_back(node, run):
    before = state(node)
    run(rails=RAILS)
    node.failing = "netplan generate"
    run(state="absent")
    node.failing = None
    run(rails=RAILS)
    run(state="absent")
    assert state(node) == before


def test_a_way_back_that_failed_is_finished_by_a_teardown(node, run):
    before = state(node)
    node.broken, node.failing = [B], "ip link set"
    assert run(rails=RAILS, limit=0)["failed"] is True
    assert node.links[A]["mtu"] == 9000
    node.failing = None
    assert run(state="absent")["changed"] is True
    assert state(node) == before


def test_no_rails_are_the_same_as_absent(node, run):
    before = state(node)
    run(rails=RAILS, hosts=HOSTS)
    assert run(rails=[], hosts=HOSTS)["changed"] is True
    assert state(node) == before
    assert run(rails=[])["changed"] is False


def test_a_netplan_file_of_somebody_else_comes_back(node, run):
    (node.folder / "60-gb10-fabric.yaml").write_text("network: {version: 2}\n")
    before = state(node)
    assert run(rails=RAILS)["backups"] == [str(node.folder / "60-gb10-fabric.yaml")]
    run(state="absent")
    assert state(node) == before


def test_a_link_that_drifted_is_put_right(node, run):
    run(rails=RAILS)
    node.links[B]["mtu"] = 1500
    check = run(rails=RAILS, _ansible_check_mode=True, _ansible_diff=True)
    assert check["activated"] == [B]
    assert check["diff"][0]["before"].startswith("mtu 1500\n")
    assert run(rails=RAILS)["activated"] == [B]
    assert node.links[B]["mtu"] == 9000
    assert run(rails=RAILS)["changed"] is False


def test_a_rail_that_is_no_longer_one_is_given_back(node, run):
    run(rails=RAILS)
    result = run(rails=RAILS[:1])
    assert B in result["activated"]
    assert node.links[B] == {"mtu": 1500, "addresses": ["10.5.5.5/24"], "up": True}
    assert run(rails=RAILS[:1])["changed"] is False
    run(state="absent")
    assert node.links[A] == {"mtu": 1500, "addresses": [], "up": False}


def test_a_rail_that_does_not_come_up_brings_the_old_state_back(node, run):
    before = state(node)
    node.broken = [B]
    result = run(rails=RAILS, hosts=HOSTS, limit=0)
    assert result["failed"] is True
    assert result["msg"].startswith(
        f"fabric_rails: the rail {B} was not set up within 0 s (MTU is 1500, not 9000; address 192.168.101.10/24 is missing"
        " (there is 10.5.5.5/24)), and the state before is back: look at 'networkctl status enP2p1s0f0np0'"
    )
    assert state(node) == before


def test_a_change_that_fails_brings_the_rails_of_before_back(node, run):
    run(rails=RAILS)
    before = state(node)
    node.broken = [B]
    assert run(rails=RAILS, mtu=4200, limit=0)["failed"] is True
    links, files = state(node)
    assert files == before[1]
    assert links[A] == before[0][A]
    node.broken = []
    assert run(rails=RAILS)["changed"] is False


@pytest.mark.parametrize("command", ["netplan generate", "networkctl reload"])
def test_a_tool_that_fails_is_named_and_the_old_state_comes_back(node, run, command):
    before = state(node)
    node.failing = command
    result = run(rails=RAILS)
    assert result["msg"] == f"fabric_rails: {command} ended with 1: {command.split()[0]}: no such luck."
    assert state(node) == before


def test_a_tool_that_hangs_is_named_and_the_old_state_comes_back(node, run):
    before = state(node)
    node.failing, node.status = "networkctl reconfigure", 124
    assert run(rails=RAILS)["msg"] == f"fabric_rails: networkctl reconfigure {A} did not end within 60 s and was stopped."
    assert state(node) == before


def test_network_manager_takes_up_each_connection_by_itself(node, run):
    node.renderer = "NetworkManager"
    result = run(rails=RAILS, limit=7)
    assert result["renderer"] == "NetworkManager"
    ups = [call for call in node.calls if call.startswith("nmcli")]
    assert ups == [
        "nmcli connection reload",
        f"nmcli --wait 7 connection up netplan-{A} ifname {A}",
        f"nmcli --wait 7 connection up netplan-{B} ifname {B}",
    ]
    text = (node.folder / "60-gb10-fabric.yaml").read_text()
    assert "ignore-carrier" not in text and text.count('connection.autoconnect-priority: "100"') == 2
    node.broken = [A]
    node.links[A]["mtu"] = 1500
    assert f"look at 'nmcli device show {A}'" in run(rails=RAILS, limit=0)["msg"]


def test_a_rail_that_is_not_there(node, run):
    before = state(node)
    result = run(rails=[{**RAILS[0], "netdev": "enp9s0"}])
    assert result["msg"] == (
        "fabric_rails: the rail enp9s0 is not on this node: put the cable in at both ends and boot it, or correct"
        " spark_cage or spark_rail_addresses."
    )
    assert state(node) == before


def test_a_missing_tool_is_named(node, run, monkeypatch):
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda module, name, **options: None if name == "netplan" else f"/usr/bin/{name}")
    assert run(rails=RAILS)["msg"] == "fabric_rails: netplan is not on this node; install the package that has it."


def test_one_run_at_a_time(node, run):
    with locked(str(node.folder), 0):
        assert run(rails=RAILS)["msg"].startswith(f"fabric_rails: Another run has held the lock on {node.folder}")
    assert node.calls == []


def test_a_renderer_can_be_named(node, run):
    assert run(rails=RAILS, renderer="networkd")["renderer"] == "networkd"
    assert "netplan get network.renderer" not in node.calls


def test_a_node_without_a_hosts_file_gets_one(node, run):
    (node.folder / "hosts").unlink()
    run(rails=RAILS, hosts=HOSTS)
    assert "spark-b-rail0" in (node.folder / "hosts").read_text()


def test_without_rights_the_cure_is_named(node, run, monkeypatch):
    def forbidden(*arguments):
        raise PermissionError(13, "Permission denied", "/etc/netplan")

    monkeypatch.setattr(_node_files, "write_file", forbidden)
    assert "the task needs become: true" in run(rails=RAILS)["msg"]
