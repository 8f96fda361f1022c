# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from ansible_collections.gb10.fleet.plugins.plugin_utils.plan import fleet_plan


def plan_of(fleet):
    return fleet_plan(fleet.clusters, fleet.hostvars)


def fails(fleet):
    """The failing findings as (id, node, sentence)."""
    found = plan_of(fleet)["findings"]
    return [(one["id"], one["node"], f"{one['what']} {one['cure']}") for one in found if one["severity"] == "fail"]


def the_fail(fleet):
    """The only failing finding; there must be no plan beside it."""
    found = fails(fleet)
    assert len(found) == 1, found
    return found[0]


def test_a_pair(fleet):
    made = plan_of(fleet)
    assert made["findings"] == []
    assert list(made["nodes"]) == ["spark-a", "spark-b"]
    head, worker = made["nodes"]["spark-a"], made["nodes"]["spark-b"]
    assert head["rails"] == [
        {
            "netdev": "enp1s0f0np0", "device": "rocep1s0f0", "cage": "p0", "address": "192.168.100.10", "prefix": 24,
            "subnet": "192.168.100.0/24", "peers": [{"node": "spark-b", "address": "192.168.100.11"}],
        },
        {
            "netdev": "enP2p1s0f0np0", "device": "roceP2p1s0f0", "cage": "p0", "address": "192.168.101.10", "prefix": 24,
            "subnet": "192.168.101.0/24", "peers": [{"node": "spark-b", "address": "192.168.101.11"}],
        },
    ]
    assert (head["role"], worker["role"], worker["head"]) == ("head", "worker", "spark-a")
    assert (head["address"], head["interface"], worker["address"]) == ("192.168.100.10", "enp1s0f0np0", "192.168.100.11")
    assert worker["head_address"] == "192.168.100.10"
    assert head["addresses"] == worker["addresses"] == ["192.168.100.10", "192.168.100.11"]
    assert (head["cluster"], head["nodes"], head["topology"]) == ("pair", ["spark-a", "spark-b"], "pair")
    assert (head["tensor_parallel"], head["executor"], head["mtu"]) == (2, "ray", 9000)
    assert head["toolchain"]["name"] == "cuda-12.8"
    assert head["profile"]["engine"] == {"max-model-len": 512}
    assert head["model"] == {"name": "small", "source": "/srv/models/small"}
    assert head["hosts"][3] == {"address": "192.168.101.11", "names": ["spark-b-rail1"]}


def test_a_cluster_of_one_has_no_rails(fleet):
    fleet.clusters = [{"name": "solo", "nodes": ["spark-a"]}]
    fleet.set("spark_profile", "single")
    made = plan_of(fleet)
    assert made["findings"] == []
    solo = made["nodes"]["spark-a"]
    assert (solo["rails"], solo["hosts"], solo["address"], solo["interface"]) == ([], [], "127.0.0.1", "lo")
    assert solo["addresses"] == ["127.0.0.1"]
    assert (solo["executor"], solo["tensor_parallel"], solo["topology"]) == ("none", 1, "single")


def test_a_cluster_of_one_needs_no_rdma_device(fleet):
    fleet.clusters = [{"name": "solo", "nodes": ["spark-a"]}]
    fleet.set("spark_profile", "single")
    fleet.facts("spark-a")["rdma"] = {"devices": [], "state": "no_device"}
    assert plan_of(fleet)["nodes"]


def test_four_nodes_on_a_switch(fleet):
    fleet.clusters = [{"name": "quad", "nodes": ["spark-a", "spark-b", "spark-c", "spark-d"]}]
    fleet.set("spark_tensor_parallel", 4)
    made = plan_of(fleet)
    assert made["findings"] == []
    last = made["nodes"]["spark-d"]
    assert (last["topology"], last["address"]) == ("switch", "192.168.100.13")
    assert last["addresses"] == ["192.168.100.10", "192.168.100.11", "192.168.100.12", "192.168.100.13"]
    assert [peer["address"] for peer in last["rails"][1]["peers"]] == ["192.168.101.10", "192.168.101.11", "192.168.101.12"]


RING = Path(__file__).parents[4] / "inventories" / "spark-fleet" / "hosts.yml"


def ring(fleet, make_spark):
    hosts = yaml.safe_load(RING.read_text())["spark"]["children"]["ring"]["hosts"]
    fleet.clusters = [{"name": "ring", "nodes": list(hosts)}]
    for number, (node, variables) in enumerate(hosts.items()):
        facts = make_spark(f"10.20.30.{7 + number}/24", up=("p0", "p1"))
        fleet.hostvars[node] = {
            **fleet.hostvars["spark-a"], **variables, "spark_tensor_parallel": 3, "ansible_facts": {"spark": facts},
        }


def test_the_ring_of_the_sample_inventory(fleet, make_spark):
    ring(fleet, make_spark)
    made = plan_of(fleet)
    assert made["findings"] == []
    first = made["nodes"]["spark-11"]
    assert first["topology"] == "ring"
    assert (first["address"], first["interface"]) == ("10.20.30.7", "enP7s7")
    assert made["nodes"]["spark-12"]["head_address"] == "10.20.30.7"
    assert [made["nodes"][node]["addresses"] for node in first["nodes"]] == [["10.20.30.7", "10.20.30.8", "10.20.30.9"]] * 3
    assert {rail["netdev"]: [peer["node"] for peer in rail["peers"]] for rail in first["rails"]} == {
        "enp1s0f0np0": ["spark-12"], "enP2p1s0f0np0": ["spark-12"], "enp1s0f1np1": ["spark-13"], "enP2p1s0f1np1": ["spark-13"],
    }


def test_a_ring_needs_a_management_address(fleet, make_spark):
    ring(fleet, make_spark)
    interfaces = fleet.facts("spark-12")["platform"]["interfaces"]
    next(found for found in interfaces if found["name"] == "enP7s7").update(addresses=["fe80::2/64"], default_route=False)
    assert the_fail(fleet)[:2] == ("plan.no_management_address", "spark-12")


def test_a_broken_ring_names_the_node_that_is_not_reached(fleet, make_spark):
    ring(fleet, make_spark)
    for node, netdevs in (("spark-11", ("enp1s0f1np1", "enP2p1s0f1np1")), ("spark-13", ("enp1s0f0np0", "enP2p1s0f0np0"))):
        for netdev in netdevs:
            del fleet.hostvars[node]["spark_rail_addresses"][netdev]
    assert the_fail(fleet) == (
        "plan.no_rail_to_peer", "spark-11",
        "No rail of this node shares a subnet with spark-13. Correct spark_rail_addresses of the two.",
    )


def test_the_plan_does_not_hang_on_the_order_of_mappings(fleet):
    own = {"enp1s0f0np0": "10.1.0.1/24", "enP2p1s0f0np0": "10.2.0.1/24"}
    fleet.hostvars["spark-a"]["spark_rail_addresses"] = own
    fleet.hostvars["spark-b"]["spark_rail_addresses"] = {"enp1s0f0np0": "10.1.0.2/24", "enP2p1s0f0np0": "10.2.0.2/24"}
    turned = copy.deepcopy(fleet)
    turned.hostvars = {host: turned.hostvars[host] for host in reversed(list(turned.hostvars))}
    for variables in turned.hostvars.values():
        if "spark_rail_addresses" in variables:
            variables["spark_rail_addresses"] = dict(reversed(variables["spark_rail_addresses"].items()))
        variables["ansible_facts"]["spark"]["rdma"]["devices"].reverse()
        variables["ansible_facts"]["spark"]["platform"]["interfaces"].reverse()
    assert plan_of(turned) == plan_of(fleet)
    assert plan_of(fleet)["findings"] == []


def test_rails_are_paired_by_subnet_even_when_cages_are_crossed(fleet, make_spark):
    fleet.hostvars["spark-a"]["spark_rail_addresses"] = {"enp1s0f0np0": "10.1.0.1/24", "enP2p1s0f0np0": "10.2.0.1/24"}
    fleet.hostvars["spark-b"]["spark_rail_addresses"] = {"enp1s0f1np1": "10.2.0.2/24", "enP2p1s0f1np1": "10.1.0.2/24"}
    fleet.hostvars["spark-b"]["ansible_facts"]["spark"] = make_spark("10.20.30.8/24", up=("p1",))
    made = plan_of(fleet)
    assert made["findings"] == []
    assert [rail["device"] for rail in made["nodes"]["spark-b"]["rails"]] == ["roceP2p1s0f1", "rocep1s0f1"]


# Cages


def test_the_cage_with_the_link_is_taken(fleet, make_spark):
    fleet.hostvars["spark-b"]["ansible_facts"]["spark"] = make_spark("10.20.30.8/24", up=("p1",))
    rails = plan_of(fleet)["nodes"]["spark-b"]["rails"]
    assert [rail["netdev"] for rail in rails] == ["enp1s0f1np1", "enP2p1s0f1np1"]


def test_two_cages_with_links_are_told(fleet, make_spark):
    fleet.hostvars["spark-a"]["ansible_facts"]["spark"] = make_spark(up=("p0", "p1"))
    made = plan_of(fleet)
    assert [(one["id"], one["severity"], one["node"]) for one in made["findings"]] == [("plan.cage_chosen", "info", "spark-a")]
    assert made["nodes"]["spark-a"]["rails"][0]["cage"] == "p0"


def test_a_cage_that_has_the_rails_addresses_is_taken_first(fleet, make_spark):
    addresses = {"enp1s0f1np1": "192.168.100.10/24", "enP2p1s0f1np1": "192.168.101.10/24"}
    fleet.hostvars["spark-a"]["ansible_facts"]["spark"] = make_spark(up=("p0", "p1"), addresses=addresses)
    made = plan_of(fleet)
    assert made["findings"] == []
    assert made["nodes"]["spark-a"]["rails"][0]["cage"] == "p1"


def test_links_that_nobody_brought_up_yet_are_no_reason_to_stop(fleet):
    for node in ("spark-a", "spark-b"):
        for device in fleet.facts(node)["rdma"]["devices"]:
            device["state"] = "DOWN"
            fleet.interface(node, device["netdev"])["carrier"] = None
    made = plan_of(fleet)
    assert {one["severity"] for one in made["findings"]} == {"info"}
    assert made["nodes"]["spark-a"]["rails"][0]["cage"] == "p0"


def test_all_links_down(fleet, make_spark):
    fleet.hostvars["spark-b"]["ansible_facts"]["spark"] = make_spark("10.20.30.8/24", up=())
    identifier, node, text = the_fail(fleet)
    assert (identifier, node) == ("plan.link_down", "spark-b")
    assert "The links of all rails are down: enP2p1s0f0np0 and" in text and "Put the cable in at both ends" in text


def test_the_link_of_one_twin_down(fleet):
    fleet.device("spark-a", "roceP2p1s0f0")["state"] = "DOWN"
    fleet.interface("spark-a", "enP2p1s0f0np0")["carrier"] = False
    identifier, node, text = the_fail(fleet)
    assert (identifier, node) == ("plan.link_down", "spark-a")
    assert "rail enP2p1s0f0np0 (roceP2p1s0f0, cage p0) is down" in text


def test_a_cage_that_is_asked_for_and_has_no_link(fleet):
    fleet.set("spark_cage", "p1", ["spark-a"])
    assert [found[:2] for found in fails(fleet)] == [("plan.link_down", "spark-a")] * 2


@pytest.mark.parametrize("cage, words", [("p7", "spark_cage is p7, and this node has p0 and p1.")])
def test_a_cage_that_is_not_there(fleet, cage, words):
    fleet.set("spark_cage", cage, ["spark-a"])
    assert the_fail(fleet) == ("plan.cage_missing", "spark-a", f"{words} Set it to one that is there, or leave it out.")


def test_ports_without_a_cage_must_be_named(fleet):
    for device in fleet.facts("spark-a")["rdma"]["devices"]:
        device["cage"] = None
    assert "Name the rails in spark_rail_addresses; there are enP2p1s0f0np0 and" in the_fail(fleet)[2]


def test_no_rdma_device(fleet):
    fleet.facts("spark-b")["rdma"] = {"devices": [], "state": "no_device", "reason": "no cable"}
    found = plan_of(fleet)["findings"]
    assert [(one["id"], one["node"], one["evidence"]) for one in found] == [("plan.no_rdma_device", "spark-b", "no cable")]


# Who is where


def test_a_host_in_two_clusters(fleet):
    fleet.clusters.append({"name": "other", "nodes": ["spark-b", "spark-c"]})
    assert (
        "plan.host_in_two_clusters", "spark-b",
        "This host is in the clusters pair and other, which are child groups of spark. Leave it in one of them.",
    ) in fails(fleet)


def test_a_host_in_no_cluster(fleet):
    fleet.clusters.append({"name": None, "nodes": ["spark-c"]})
    assert the_fail(fleet)[:2] == ("plan.host_in_no_cluster", "spark-c")


def test_no_cluster_at_all(fleet):
    fleet.clusters = [{"name": "empty", "nodes": []}]
    assert the_fail(fleet)[0] == "plan.no_cluster"


def test_no_node_looked_at(fleet):
    for variables in fleet.hostvars.values():
        variables["ansible_facts"] = {}
    assert the_fail(fleet)[0] == "plan.no_facts"


def test_a_cluster_outside_the_limit_is_left_out(fleet):
    fleet.clusters.append({"name": "other", "nodes": ["spark-c", "spark-d"]})
    del fleet.hostvars["spark-c"]["ansible_facts"]
    del fleet.hostvars["spark-d"]["ansible_facts"]
    made = plan_of(fleet)
    assert made["findings"] == []
    assert list(made["nodes"]) == ["spark-a", "spark-b"]


def test_half_a_cluster_is_refused(fleet):
    del fleet.hostvars["spark-b"]["ansible_facts"]
    assert the_fail(fleet)[:2] == ("plan.node_not_looked_at", "spark-b")


@pytest.mark.parametrize("name", ["spark_profile", "spark_toolchain", "spark_mtu", "spark_rail_subnets", "spark_wheelhouse"])
def test_what_a_cluster_has_in_common(fleet, name):
    fleet.set(name, "else", ["spark-b"])
    identifier, node, text = the_fail(fleet)
    assert (identifier, node) == ("plan.not_shared", "spark-b")
    assert text.startswith(f"{name} is else here and ")


# What is served


def test_a_cluster_of_one_with_tensor_parallel_two(fleet):
    fleet.clusters = [{"name": "solo", "nodes": ["spark-a"]}]
    assert the_fail(fleet) == (
        "plan.cluster_of_one", "spark-a",
        "tensor_parallel of spark_profile pairs is 2, and cluster solo has this one node only."
        " Add the other nodes to solo, or set spark_tensor_parallel to 1 with a profile that fits one node.",
    )


@pytest.mark.parametrize("size, words", [(3, "is 3, and cluster pair has 2 nodes"), (0, "is no number"), ("two", "is no number"), (True, "is no number")])
def test_tensor_parallel_is_the_number_of_nodes(fleet, size, words):
    fleet.set("spark_tensor_parallel", size)
    identifier, node, text = the_fail(fleet)
    assert identifier == "plan.tensor_parallel"
    assert words in text and "spark_tensor_parallel" in text and "Set" in text


@pytest.mark.parametrize(
    "name, words",
    [
        ("pair", "spark_profile is pair, and there is no such profile; did you mean pairs (there are "),
        ("llama", "there are "),
    ],
)
def test_an_unknown_profile(fleet, name, words):
    fleet.set("spark_profile", name)
    identifier, _node, text = the_fail(fleet)
    assert identifier == "plan.profile_unknown"
    assert words in text
    assert all(known in text for known in ("four", "pairs", "single"))


@pytest.mark.parametrize("value", [None, ""])
def test_no_profile(fleet, value):
    fleet.set("spark_profile", value)
    identifier, node, text = the_fail(fleet)
    assert (identifier, node) == ("plan.profile_missing", "spark-a")
    assert "spark_profile is not set for cluster pair" in text and "pairs" in text


def test_profiles_folder_that_is_not_there(fleet):
    fleet.set("spark_profiles", "/nowhere")
    assert the_fail(fleet)[0] == "plan.profile"
    assert "spark_profiles is /nowhere" in the_fail(fleet)[2]


def test_a_profile_that_the_toolchain_cannot_serve(fleet):
    fleet.set("spark_profile", "four")
    assert the_fail(fleet) == (
        "plan.profile_toolchain", "spark-a",
        "spark_profile four cannot be served by spark_toolchain cuda-12.8."
        " Set spark_toolchain to cuda-13.0, or choose another profile.",
    )
    fleet.set("spark_toolchain", "cuda-13.0")
    assert fails(fleet) == []


@pytest.mark.parametrize("variable, identifier", [("spark_profile", "plan.profile_unknown"), ("spark_toolchain", "plan.toolchain")])
@pytest.mark.parametrize("value", [["tiny"], {"tiny": 1}, 7])
def test_a_name_that_is_no_text(fleet, variable, identifier, value):
    fleet.set(variable, value)
    found = the_fail(fleet)
    assert found[0] == identifier
    assert f"{variable} is {value}" in found[2]


def test_an_unknown_toolchain(fleet):
    fleet.set("spark_toolchain", "cuda-12.9")
    identifier, _node, text = the_fail(fleet)
    assert identifier == "plan.toolchain"
    assert "did you mean cuda-12.8 (there are cpu, cuda-12.8, cuda-13.0)" in text


@pytest.mark.parametrize("name", ["spark_wheelhouse", "spark_model_source"])
@pytest.mark.parametrize("value, words", [(None, "is not set"), ("models/x", "is models/x")])
def test_folders_are_absolute(fleet, name, value, words):
    fleet.set(name, value)
    identifier, node, text = the_fail(fleet)
    assert (identifier, node) == ("plan.path", "spark-a")
    assert text.startswith(f"{name} {words}.")


# MTU


@pytest.mark.parametrize("mtu", [1279, 9979, "jumbo", True, -9000])
def test_an_mtu_out_of_range(fleet, mtu):
    fleet.set("spark_mtu", mtu)
    assert the_fail(fleet) == ("plan.mtu", "spark-a", f"spark_mtu is {mtu}, and the rails take 1280 to 9978 bytes. Set it to 9000.")


@pytest.mark.parametrize("mtu, warned", [(4096, True), (4191, True), (4192, False), ("9000", False)])
def test_an_mtu_that_halves_the_roce_mtu(fleet, mtu, warned):
    fleet.set("spark_mtu", mtu)
    made = plan_of(fleet)
    assert [one["id"] for one in made["findings"]] == (["plan.mtu_low"] if warned else [])
    assert made["nodes"]["spark-a"]["mtu"] == int(mtu)


@pytest.mark.parametrize("port", [0, -5, 22, 65536, "abc", True])
def test_a_port_that_the_engine_cannot_take(fleet, port):
    fleet.set("spark_port", port)
    assert the_fail(fleet)[:2] == ("plan.port", "spark-a")


def test_an_address_to_listen_on_that_is_none(fleet):
    fleet.set("spark_listen", "nonsense")
    assert the_fail(fleet) == (
        "plan.listen", "spark-a",
        "spark_listen is nonsense, which is no address. Set it to 127.0.0.1, to 0.0.0.0, or to an address of this head.",
    )


# Addresses


def own(fleet, first, second):
    fleet.hostvars["spark-a"]["spark_rail_addresses"] = first
    fleet.hostvars["spark-b"]["spark_rail_addresses"] = second


GOOD = {"enp1s0f0np0": "10.1.0.2/24", "enP2p1s0f0np0": "10.2.0.2/24"}


@pytest.mark.parametrize(
    "first, identifier, words",
    [
        ({"enp1s0f9np9": "10.1.0.1/24"}, "plan.rail_missing", "names enp1s0f9np9, which is no rail of this node; did you mean enp1s0f"),
        ({"rocep1s0f0": "10.1.0.1/24"}, "plan.rail_missing", "that is an RDMA device, its netdev is enp1s0f0np0"),
        ({"enP7s7": "10.1.0.1/24"}, "plan.rail_missing", "names enP7s7, which is no rail of this node"),
        ({"enp1s0f0np0": "10.1.0.1/24"}, "plan.twin_missing", "gives enp1s0f0np0 an address and not its twin enP2p1s0f0np0"),
        ({**GOOD, "enp1s0f0np0": "10.1.0.300/24"}, "plan.address", "has 10.1.0.300/24 for enp1s0f0np0, which is no address"),
        ({**GOOD, "enp1s0f0np0": "10.1.0.1"}, "plan.address", "with its prefix"),
        ({**GOOD, "enp1s0f0np0": "10.1.0.0/24"}, "plan.address", "is no address of a host"),
        ({**GOOD, "enp1s0f0np0": "10.1.0.255/24"}, "plan.address", "is no address of a host"),
        ({**GOOD, "enp1s0f0np0": "fd00::1/64"}, "plan.address", "is no address of a host"),
        ({**GOOD, "enp1s0f0np0": 7}, "plan.address", "has 7 for enp1s0f0np0"),
        (GOOD, "plan.address_twice", "has 10.1.0.2 for enp1s0f0np0, which is that of enp1s0f0np0 on spark-a too"),
        ({"enp1s0f0np0": "10.9.0.1/24", "enP2p1s0f0np0": "10.2.0.1/24"}, "plan.address_out_of_subnet", "no other node of pair is in 10."),
        ({"enp1s0f0np0": "10.1.0.1/24", "enP2p1s0f0np0": "10.1.0.3/24"}, "plan.subnets_overlap", "are both in 10.1.0.0/24"),
        (["enp1s0f0np0"], "plan.rail_addresses", "Write it as NETDEV: ADDRESS/PREFIX"),
    ],
)
def test_wrong_rail_addresses(fleet, first, identifier, words):
    own(fleet, first, GOOD)
    found = fails(fleet)
    assert identifier in [one[0] for one in found]
    text = next(one[2] for one in found if one[0] == identifier)
    assert words in text


def test_addresses_outside_the_subnets_that_the_inventory_names(fleet):
    own(fleet, {"enp1s0f0np0": "10.1.0.1/24", "enP2p1s0f0np0": "10.2.0.1/24"}, GOOD)
    assert fails(fleet) == []
    fleet.set("spark_rail_subnets", ["10.1.0.0/24", "10.3.0.0/24"])
    found = fails(fleet)
    assert [one[:2] for one in found] == [("plan.address_out_of_subnet", "spark-a"), ("plan.address_out_of_subnet", "spark-b")]
    assert "10.2.0.1/24 for enP2p1s0f0np0, which is in none of spark_rail_subnets (10.1.0.0/24, 10.3.0.0/24)" in found[0][2]


def test_rails_of_the_other_cage_than_asked_for(fleet):
    own(fleet, {"enp1s0f0np0": "10.1.0.1/24", "enP2p1s0f0np0": "10.2.0.1/24"}, GOOD)
    fleet.set("spark_cage", "p1", ["spark-a"])
    assert [one[0] for one in fails(fleet)] == ["plan.cage_conflict"] * 2


@pytest.mark.parametrize(
    "subnets, identifier, words",
    [
        ("192.168.100.0/24", "plan.subnets", "Write a list"),
        (["192.168.100.0/24"], "plan.subnets", "has 1 subnets, and a cage of this node has 2 rails"),
        (["192.168.100.1/24", "192.168.101.0/24"], "plan.subnets", "has 192.168.100.1/24, which is no IPv4 network"),
        (["192.168.100.0/31", "192.168.101.0/24"], "plan.subnets", "room for two nodes"),
        (["127.0.0.0/24", "192.168.101.0/24"], "plan.subnets", "has 127.0.0.0/24, which is no IPv4 network"),
        (["192.168.100.0/24", "239.1.0.0/24"], "plan.subnets", "has 239.1.0.0/24, which is no IPv4 network"),
        (["fd00::/64", "192.168.101.0/24"], "plan.subnets", "no IPv4 network"),
        (["rail", "192.168.101.0/24"], "plan.subnets", "has rail"),
        (["10.0.0.0/8", "10.1.0.0/24"], "plan.subnets_overlap", "has 10.1.0.0/24, which overlaps 10.0.0.0/8"),
        (["10.20.30.0/24", "192.168.101.0/24"], "plan.subnet_in_use", "overlaps 10.20.30.0/24 of enP7s7"),
        (["10.20.0.0/16", "192.168.101.0/24"], "plan.subnet_in_use", "overlaps 10.20.30.0/24 of enP7s7"),
    ],
)
def test_wrong_subnets(fleet, subnets, identifier, words):
    fleet.set("spark_rail_subnets", subnets)
    found = fails(fleet)
    assert found[0][0] == identifier
    assert words in found[0][2] and "spark_rail" in found[0][2]


def test_a_small_subnet_begins_at_its_first_address(fleet):
    fleet.set("spark_rail_subnets", ["10.1.0.0/30", "10.1.0.4/30"])
    made = plan_of(fleet)
    assert [rail["address"] for rail in made["nodes"]["spark-b"]["rails"]] == ["10.1.0.2", "10.1.0.6"]


def test_a_subnet_that_is_full(fleet):
    fleet.clusters = [{"name": "three", "nodes": ["spark-a", "spark-b", "spark-c"]}]
    fleet.set("spark_tensor_parallel", 3)
    fleet.set("spark_rail_subnets", ["10.1.0.0/30", "10.1.0.4/30"])
    assert [one[:2] for one in fails(fleet)] == [("plan.subnet_full", "spark-c")] * 2


@pytest.mark.parametrize("change", [{"default_route": True}, {"addresses": ["10.20.30.7/24"]}])
def test_the_management_link_never_becomes_a_rail(fleet, change):
    fleet.interface("spark-a", "enp1s0f0np0").update(change)
    assert "plan.rail_is_management" in [one[0] for one in fails(fleet)]


def test_an_address_of_the_users_own_is_told(fleet):
    fleet.interface("spark-a", "enp1s0f0np0")["addresses"] = ["192.168.55.1/24", "169.254.1.1/16", "fe80::1/64"]
    found = plan_of(fleet)["findings"]
    assert [(one["id"], one["severity"]) for one in found] == [("plan.rail_has_address", "warn")]
    assert found[0]["what"] == "enp1s0f0np0 has 192.168.55.1/24 already and gets 192.168.100.10/24 beside it."


def test_a_bad_nccl_variable_stops_the_plan(fleet):
    fleet.set("spark_nccl_environment", {"NCCL_IB_TIMEOUT": 40, "NCCL_NET_GDR_LEVEL": 5})
    made = plan_of(fleet)
    assert made["nodes"] == {}
    assert [(one["severity"], one["node"]) for one in made["findings"]] == [
        ("fail", "spark-a"), ("warn", "spark-a"), ("fail", "spark-b"), ("warn", "spark-b"),
    ]
    assert made["findings"][0]["what"].startswith("spark_nccl_environment: NCCL_IB_TIMEOUT is 40, and the exponent")


def test_nccl_environment_that_is_no_mapping(fleet):
    fleet.set("spark_nccl_environment", "NCCL_DEBUG=INFO")
    assert fails(fleet)[0][2] == "spark_nccl_environment is no mapping. Write it as VARIABLE: value."


def test_every_finding_has_all_fields_and_what_the_catalogue_says_of_its_kind(fleet):
    fleet.set("spark_mtu", 40)
    found = plan_of(fleet)["findings"][0]
    assert set(found) == {"id", "severity", "node", "cluster", "what", "evidence", "cause", "cure", "source", "silenced", "cured_by"}
    assert (found["id"], found["source"], found["silenced"], found["cured_by"]) == ("plan.mtu", "ConnectX-7 and IPv6", None, None)


def test_names_of_nodes_that_are_addresses_or_have_a_domain(fleet):
    fleet.clusters = [{"name": "pair", "nodes": ["spark-a.example.net", "10.20.30.8"]}]
    fleet.hostvars["spark-a.example.net"] = fleet.hostvars["spark-a"]
    fleet.hostvars["10.20.30.8"] = fleet.hostvars["spark-b"]
    hosts = plan_of(fleet)["nodes"]["10.20.30.8"]["hosts"]
    assert [host["names"] for host in hosts] == [
        ["spark-a-rail0"], ["spark-a-rail1"], ["10.20.30.8-rail0"], ["10.20.30.8-rail1"],
    ]
