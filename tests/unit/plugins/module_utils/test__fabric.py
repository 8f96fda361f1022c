# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _fabric

RAILS = [
    {"netdev": "enp1s0f0np0", "address": "192.168.100.10", "prefix": 24},
    {"netdev": "enP2p1s0f0np0", "address": "192.168.101.10", "prefix": 24},
]
HOSTS = [{"address": "192.168.100.11", "names": ["spark-b-rail0", "b0"]}]

NETPLAN = """\
# Written by gb10.fleet, role fabric. Change spark_* in the inventory instead; teardown takes this file away.
network:
  version: 2
  ethernets:
    enp1s0f0np0:
      match: {name: enp1s0f0np0}
      addresses: [192.168.100.10/24]
      mtu: 9000
      dhcp4: false
      dhcp6: false
      accept-ra: false
      optional: true
      ignore-carrier: true
"""


def test_netplan_of_a_rail_names_no_renderer_and_matches_the_interface():
    assert _fabric.netplan_text(RAILS[:1], 9000, "networkd") == NETPLAN


def test_network_manager_knows_no_ignore_carrier():
    text = _fabric.netplan_text(RAILS, 4200, "NetworkManager")
    assert "ignore-carrier" not in text
    assert text.count("mtu: 4200") == 2


@pytest.mark.parametrize(
    "change, words",
    [
        ({"netdev": "a name"}, r"rails\[1\].netdev is a name"),
        ({"netdev": "enp1s0f0np0"}, r"rails\[1\].netdev repeats enp1s0f0np0"),
        ({"address": "192.168.101.300"}, r"rails\[1\] \(enP2p1s0f0np0\) needs an IPv4 address"),
        ({"prefix": 40}, "needs an IPv4 address and a prefix"),
    ],
)
def test_wrong_rails_are_refused(change, words):
    _fabric.check_rails(RAILS)
    with pytest.raises(_fabric.FabricError, match=words):
        _fabric.check_rails([RAILS[0], {**RAILS[1], **change}])


@pytest.mark.parametrize("before", ["", "127.0.0.1 localhost\n", "127.0.0.1 localhost", "a\n\n"])
def test_the_hosts_file_comes_back_byte_for_byte(before):
    written = _fabric.hosts_text(before, HOSTS)
    assert "192.168.100.11\tspark-b-rail0 b0\n" in written
    assert written.startswith(before)
    assert _fabric.hosts_text(written, HOSTS) == written
    assert _fabric.hosts_text(written, []) == before


def test_lines_of_others_below_the_block_stay():
    written = _fabric.hosts_text("127.0.0.1 localhost\n", HOSTS) + "10.0.0.1 theirs\n"
    assert _fabric.hosts_text(written, HOSTS) == written
    changed = _fabric.hosts_text(written, [{"address": "192.168.100.12", "names": ["c"]}])
    assert changed.startswith("127.0.0.1 localhost\n10.0.0.1 theirs\n")
    assert "spark-b-rail0" not in changed
    assert _fabric.hosts_text(changed, []) == "127.0.0.1 localhost\n10.0.0.1 theirs\n"


def test_lines_below_a_block_that_joined_a_line_without_end_stay_lines():
    written = _fabric.hosts_text("127.0.0.1 localhost", HOSTS) + "10.0.0.1 theirs\n"
    assert _fabric.hosts_text(written, []) == "127.0.0.1 localhost\n10.0.0.1 theirs\n"


def test_a_block_without_end_is_refused():
    with pytest.raises(_fabric.FabricError, match="remove what lies between by hand"):
        _fabric.hosts_text(f"{_fabric.HOSTS_BEGIN}\n1.1.1.1 x\n", HOSTS)


@pytest.mark.parametrize(
    "interface, wrong",
    [
        (None, ["the interface is not there"]),
        ({"mtu": 9000, "addresses": ["192.168.100.10/24", "fe80::1/64"]}, []),
        (
            {"mtu": 1500, "addresses": ["10.0.0.1/8", "fe80::1/64"]},
            ["MTU is 1500, not 9000", "address 192.168.100.10/24 is missing (there is 10.0.0.1/8)"],
        ),
        ({"mtu": 9000, "addresses": ["192.168.100.10/16"]}, ["address 192.168.100.10/24 is missing (there is 192.168.100.10/16)"]),
        ({"mtu": 9000, "addresses": []}, ["address 192.168.100.10/24 is missing (there is none)"]),
    ],
)
def test_what_is_wrong_of_a_rail(interface, wrong):
    assert _fabric.wrong_of(RAILS[0], 9000, interface) == wrong


@pytest.mark.parametrize(
    "rc, out, err, outcome",
    [
        (0, "1 packets transmitted, 1 received, 0% packet loss", "", "ok"),
        (1, "1 packets transmitted, 0 received, 100% packet loss", "", "silent"),
        (1, "1 packets transmitted, 0 received, +1 errors, 100% packet loss", "ping: local error: message too long, mtu=1500", "too_big"),
        (1, "From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n1 packets transmitted, 0 received", "", "too_big"),
        (2, "", "ping: bind: Cannot assign requested address\n", "ping: bind: Cannot assign requested address"),
        (2, "", "", "ping ended with 2"),
    ],
)
def test_what_a_ping_came_to(rc, out, err, outcome):
    assert _fabric.parse_ping(rc, out, err) == outcome
