# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress

import pytest
from gb10_lab import layout


def test_names_of_counted_nodes():
    assert layout.node_names("2") == ["spark-a", "spark-b"]
    assert layout.node_names(28)[25:] == ["spark-z", "spark-aa", "spark-ab"]


def test_names_that_are_given():
    assert layout.node_names("north, south") == ["north", "south"]
    assert layout.node_names(["x1"]) == ["x1"]


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        (0, "lab_nodes is 0 and must be 1 to 200"),
        ("a,a", "different nodes"),
        ("Big", "'Big'"),
        ([], "it names none"),
    ],
)
def test_nodes_that_cannot_be(nodes, sentence):
    with pytest.raises(layout.LayoutError, match=sentence):
        layout.node_names(nodes)


def test_a_pair_is_the_group_pair_and_more_are_numbered():
    assert layout.clusters("pair", ["a", "b"]) == {"pair": ["a", "b"]}
    assert layout.clusters("pair", ["a", "b", "c", "d", "e"]) == {"pair-1": ["a", "b"], "pair-2": ["c", "d"], "pair-3": ["e"]}
    assert layout.clusters("switch", ["a", "b", "c"]) == {"switch": ["a", "b", "c"]}


def test_a_ring_needs_three():
    with pytest.raises(layout.LayoutError, match="ring needs 3 nodes or more and lab_nodes gives 2"):
        layout.clusters("ring", ["a", "b"])


def test_cables_of_a_pair_a_ring_and_a_switch():
    assert [cable.ends for cable in layout.cables("pair", ["a", "b", "c"])] == [(("a", "p0"), ("b", "p0"))]
    ring = layout.cables("ring", ["a", "b", "c"])
    assert [cable.ends for cable in ring] == [(("a", "p1"), ("b", "p0")), (("b", "p1"), ("c", "p0")), (("c", "p1"), ("a", "p0"))]
    ends = [end for cable in ring for end in cable.ends]
    assert len(set(ends)) == 6
    (switch,) = layout.cables("switch", ["a", "b", "c", "d"])
    assert len(switch.ends) == 4 and not switch.direct


def test_the_range_depends_on_the_name_alone():
    first = layout.management_range("pair", [])
    assert first == layout.management_range("pair", ["192.0.2.0/24", "0.0.0.0/0", "fd00::/8"])
    assert first.prefixlen == 24 and first.is_private
    assert first != layout.management_range("engine", [])


def test_a_range_that_the_host_uses_is_passed_over():
    first = layout.management_range("pair", [])
    second = layout.management_range("pair", [str(first[7])])
    assert not second.overlaps(first)
    elsewhere = layout.management_range("pair", ["10.0.0.0/8"])
    assert elsewhere.subnet_of(ipaddress.ip_network("172.16.0.0/12"))
    with pytest.raises(layout.LayoutError, match="one /24 that is free"):
        layout.management_range("pair", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15"])


def test_interface_names_fit_the_kernel():
    assert len(layout.host_interface("a" * 32)) <= 15
    for function in layout.FUNCTIONS:
        assert len(layout.port_name(layout.MOST_NODES, function)) <= 15
    assert len({layout.port_name(1, function) for function in layout.FUNCTIONS}) == 4


def test_addresses_of_nodes_stay_in_the_range():
    network = layout.management_range("pair", [])
    assert ipaddress.ip_address(layout.node_address(network, layout.MOST_NODES - 1)) in network


def test_macs_are_local_unicast_and_stable():
    address = layout.mac("pair", "spark-a", "enp1s0f0np0")
    assert address == layout.mac("pair", "spark-a", "enp1s0f0np0") != layout.mac("engine", "spark-a", "enp1s0f0np0")
    assert int(address[:2], 16) & 3 == 2


def test_guid_as_the_card_builds_it():
    assert layout.guid("5e:0a:11:77:1c:16") == "5e0a:1103:0077:1c16"


@pytest.mark.parametrize("name", ["", "Pair", "1st", "a" * 33, "a.b", "a/b"])
def test_names_of_labs(name):
    with pytest.raises(layout.LayoutError, match="lab_name"):
        layout.check_name(name)
