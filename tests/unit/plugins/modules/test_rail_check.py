# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.modules import rail_check

RAIL = {
    "netdev": "enp1s0f0np0",
    "device": "rocep1s0f0",
    "address": "192.168.100.10",
    "prefix": 24,
    "peers": [{"node": "spark-b", "address": "192.168.100.11"}],
}
DEVINFO = "hca_id:\trocep1s0f0\n\ttransport:\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n" \
    "\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t{active} (5)\n\t\t\tlink_layer:\tEthernet\n"
SILENT = (1, "1 packets transmitted, 0 received, 100% packet loss", "")


class Node:
    """What the tools of a node answer; `pings` maps a size to answers, the last of which repeats."""

    def __init__(self):
        self.mtu = 9000
        self.addresses = ["192.168.100.10/24"]
        self.flags = ["UP", "LOWER_UP"]
        self.devinfo = (0, DEVINFO.format(active=4096), "")
        self.pings = {8972: [(0, "", "")], 56: [(0, "", "")]}
        self.missing = []
        self.calls = []

    def run(self, argv, **options):
        assert options["environ_update"] == {"LANGUAGE": "C", "LC_ALL": "C"}
        assert argv[:4] == ["/usr/bin/timeout", "-k", "5", "20"]
        argv = argv[4:]
        tool = os.path.basename(argv[0])
        self.calls.append(" ".join([tool] + argv[1:]))
        if tool == "ip":
            pairs = [address.split("/") for address in self.addresses]
            info = [{"local": address, "prefixlen": int(prefix)} for address, prefix in pairs]
            link = {"ifname": "enp1s0f0np0", "flags": self.flags, "mtu": self.mtu, "operstate": "UP", "addr_info": info}
            return 0, json.dumps([link]), ""
        if tool == "ibv_devinfo":
            return self.devinfo
        answers = self.pings[int(argv[argv.index("-s") + 1])]
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture(name="node")
def node_fixture(monkeypatch):
    node = Node()
    monkeypatch.setattr(
        AnsibleModule, "get_bin_path", lambda module, name, **options: None if name in node.missing else f"/usr/bin/{name}"
    )
    monkeypatch.setattr(AnsibleModule, "run_command", node.run)
    return node


@pytest.fixture(name="run")
def run_fixture(node, capsys):
    def run(**arguments):
        with patch_module_args({"node": "spark-a", "rails": [RAIL], **arguments}), pytest.raises(SystemExit):
            rail_check.main()
        return json.loads(capsys.readouterr().out)

    return run


def verdict(result):
    return [(found["id"], found["severity"]) for found in result["findings"]]


def test_a_good_rail(node, run):
    result = run()
    assert result["passed"] is True
    assert result["changed"] is False
    assert verdict(result) == [("rail.active_mtu", "ok"), ("rail.jumbo", "ok")]
    assert node.calls[-1] == "ping -n -c 1 -W 1 -M do -s 8972 -I 192.168.100.10 192.168.100.11"
    assert set(result["findings"][0]) == {"id", "severity", "node", "what", "evidence", "cause", "cure", "source"}


def test_the_first_packets_may_be_lost(node, run):
    node.pings[8972] = [SILENT, SILENT, (0, "", "")]
    assert run()["passed"] is True
    assert len([call for call in node.calls if call.startswith("ping")]) == 3


@pytest.mark.parametrize("answer", [SILENT, (1, "", "ping: local error: message too long, mtu=1500")])
def test_whole_packets_do_not_pass(node, run, answer):
    node.pings[8972] = [answer]
    result = run(attempts=2)
    assert result["passed"] is False
    finding = result["findings"][-1]
    assert (finding["id"], finding["severity"]) == ("rail.jumbo", "fail")
    assert finding["what"] == "Rail enp1s0f0np0 reaches spark-b at 192.168.100.11, but not with whole packets of 9000 bytes."
    assert "Set MTU 9000 on spark-b" in finding["cure"]


def test_nothing_passes(node, run):
    node.pings = {8972: [SILENT], 56: [SILENT]}
    result = run(attempts=2)
    assert verdict(result)[-1] == ("rail.peer", "fail")
    assert len([call for call in node.calls if call.startswith("ping")]) == 4


@pytest.mark.parametrize(
    "change, identifier, words",
    [
        ({"mtu": 1500}, "rail.interface", "MTU is 1500, not 9000"),
        ({"addresses": []}, "rail.interface", "address 192.168.100.10/24 is missing"),
        ({"flags": ["UP", "NO-CARRIER"]}, "rail.link_down", "The link of rail enp1s0f0np0 is down."),
    ],
)
def test_an_interface_that_is_not_fit_is_not_tested_further(node, run, change, identifier, words):
    vars(node).update(change)
    result = run()
    assert verdict(result) == [(identifier, "fail")]
    assert words in result["findings"][0]["what"]
    assert not [call for call in node.calls if call.startswith("ping")]


def test_a_rail_that_is_gone(node, run):
    result = run(rails=[{**RAIL, "netdev": "enp9s0"}])
    assert verdict(result) == [("rail.missing", "fail")]


def test_a_node_without_rails_has_nothing_to_prove(node, run):
    assert run(rails=[])["passed"] is True
    assert node.calls == ["ip -j address show"]


def test_rdma_uses_another_mtu_than_follows(node, run):
    node.devinfo = (0, DEVINFO.format(active=1024), "")
    result = run()
    assert verdict(result)[0] == ("rail.active_mtu", "fail")
    assert result["findings"][0]["what"] == "rocep1s0f0 uses an MTU of 1024, and 4096 follows from 9000 of enp1s0f0np0."


def test_rdma_mtu_follows_a_smaller_one(node, run):
    node.mtu = 4096
    node.devinfo = (0, DEVINFO.format(active=2048), "")
    node.pings[4068] = [(0, "", "")]
    assert run(mtu=4096)["passed"] is True


def test_an_rdma_device_that_does_not_answer(node, run):
    node.devinfo = (255, "", "No IB devices found\n")
    result = run()
    assert verdict(result)[0] == ("rail.device", "fail")
    assert result["findings"][0]["evidence"] == "No IB devices found"


def test_without_ibv_devinfo_the_rdma_mtu_is_not_known(node, run):
    node.missing = ["ibv_devinfo"]
    result = run()
    assert verdict(result) == [("rail.active_mtu", "warn"), ("rail.jumbo", "ok")]
    assert result["passed"] is True


def test_an_rdma_device_that_hangs(node, run):
    node.devinfo = (124, "", "")
    assert run()["findings"][0]["evidence"] == "ibv_devinfo -d rocep1s0f0 did not end within 20 s and was stopped"


@pytest.mark.parametrize("tool, package", [("ping", "iputils-ping"), ("ip", "iproute2")])
def test_a_missing_tool_is_named_with_its_package(node, run, tool, package):
    node.missing = [tool]
    assert package in run()["msg"]
