# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from gb10_lab import rdma

MAC = "02:c2:ce:7c:d8:df"
LINK_LOCAL = "fe80:0000:0000:0000:00c2:ceff:fe7c:d8df"
RAIL = "0000:0000:0000:0000:0000:ffff:c0a8:640a"


def link(**changes):
    return rdma.Link(**{"netdev": "enp1s0f0np0", "mac": MAC, "mtu": 9000, "carrier": True, "up": True, "addresses": [], **changes})


@pytest.mark.parametrize(
    ("netdev", "active"),
    [(1500, 1024), (2143, 1024), (2144, 2048), (4096, 2048), (4191, 2048), (4192, 4096), (9000, 4096), (600, 256), (608, 512), (68, 256)],
)
def test_active_mtu_follows_the_kernels_rule(netdev, active):
    assert rdma.active_mtu(netdev) == active


def test_gids_are_written_in_full_hex_on_every_python():
    assert rdma.address_gid("192.168.100.10") == RAIL
    assert rdma.address_gid("fd00::1") == "fd00:0000:0000:0000:0000:0000:0000:0001"
    assert rdma.default_gid(MAC) == LINK_LOCAL


def test_an_address_adds_its_two_entries_behind_the_link_local_ones():
    table = rdma.gid_table(link(addresses=["192.168.100.10", "fe80::c2:ceff:fe7c:d8df"]), [])
    assert table == [LINK_LOCAL, RAIL]
    files = rdma.port_files(link(), table, 200)
    assert files["gids/3"] == RAIL + "\n"
    assert files["gid_attrs/types/2"] == "IB/RoCE v1\n"
    assert files["gid_attrs/types/3"] == "RoCE v2\n"
    assert files["gid_attrs/ndevs/3"] == "enp1s0f0np0\n"


def test_the_rest_of_the_table_is_empty():
    files = rdma.port_files(link(), [LINK_LOCAL], 200)
    assert len([name for name in files if name.startswith("gids/")]) == 256
    assert files["gids/255"] == "0000:0000:0000:0000:0000:0000:0000:0000\n"
    assert "gid_attrs/types/2" not in files and "gid_attrs/ndevs/2" not in files


def test_an_address_that_goes_leaves_a_hole_that_the_next_one_fills():
    table = rdma.gid_table(link(addresses=["192.168.100.10", "192.168.100.11"]), [])
    table = rdma.gid_table(link(addresses=["192.168.100.11"]), table)
    assert table[1] is None and table[2].endswith("c0a8:640b")
    assert "gid_attrs/types/3" not in rdma.port_files(link(), table, 200)
    table = rdma.gid_table(link(addresses=["192.168.100.11", "192.168.100.12"]), table)
    assert table[1].endswith("c0a8:640c") and table[2].endswith("c0a8:640b")


def test_a_shift_puts_foreign_entries_first_and_taking_it_back_restores():
    shifted = rdma.gid_table(link(addresses=["192.168.100.10"]), [], shift=1)
    assert shifted.index(RAIL) == 2
    assert rdma.gid_table(link(addresses=["192.168.100.10"]), shifted, shift=0).index(RAIL) == 1


def test_a_driver_that_misses_an_address_has_no_gid_of_it():
    table = rdma.gid_table(link(addresses=["192.168.100.10"]), [], of_addresses=False)
    assert RAIL not in table and table[0] == LINK_LOCAL
    assert RAIL in rdma.gid_table(link(addresses=["192.168.100.10"]), table)


@pytest.mark.parametrize(("up", "carrier"), [(True, False), (False, False), (False, True)])
def test_a_port_without_carrier_is_down(up, carrier):
    files = rdma.port_files(link(up=up, carrier=carrier), [LINK_LOCAL], 200)
    assert (files["state"], files["phys_state"], files["rate"]) == ("1: DOWN\n", "3: Disabled\n", "40 Gb/sec (4X QDR)\n")


def test_a_port_with_carrier_is_active():
    files = rdma.port_files(link(), [LINK_LOCAL], 200)
    assert (files["state"], files["phys_state"], files["rate"]) == ("4: ACTIVE\n", "5: LinkUp\n", "200 Gb/sec (2X NDR)\n")
    assert files["link_layer"] == "Ethernet\n"


def test_a_device_is_a_connectx_7_of_a_spark():
    files = rdma.device_files(
        link(), [LINK_LOCAL], node_guid="5e0a:1103:0077:1c16", system_guid="5e0a:1103:0077:1c16", firmware="28.45.4028", psid="NVD0000000087", node="spark-a",
    )
    assert files["board_id"] == "NVD0000000087\n" and files["fw_ver"] == "28.45.4028\n" and files["hca_type"] == "MT4129\n"
    assert files["ports/1/state"] == "4: ACTIVE\n"


def test_an_infiniband_port_without_subnet_manager_is_trained_and_down():
    files = rdma.device_files(
        link(), [LINK_LOCAL], node_guid="1", system_guid="1", firmware="28.45.4028", psid="NVD0000000087", node="spark-a", link_layer="InfiniBand",
    )
    found = [files[f"ports/1/{name}"] for name in ("link_layer", "state", "phys_state")]
    assert found == ["InfiniBand\n", "1: DOWN\n", "5: LinkUp\n"]


def test_links_from_the_json_of_ip():
    links = rdma.links_from_ip([
        {"ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "mtu": 65536, "address": "00:00:00:00:00:00", "addr_info": []},
        {
            "ifname": "enp1s0f0np0", "flags": ["BROADCAST", "UP"], "mtu": 9000, "address": MAC,
            "addr_info": [
                {"family": "inet", "local": "192.168.100.10", "prefixlen": 24},
                {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "tentative": True},
            ],
        },
    ])
    assert links["enp1s0f0np0"] == link(carrier=False, addresses=["192.168.100.10"])


def test_every_port_has_the_counters_of_the_driver_and_only_given_ones_count():
    files = rdma.counter_files({"symbol_error": 12, "out_of_sequence": 3})
    assert len(files) == len(rdma.COUNTERS) + len(rdma.HARDWARE_COUNTERS)
    assert files["counters/symbol_error"] == "12\n" and files["hw_counters/out_of_sequence"] == "3\n"
    others = {name: text for name, text in files.items() if name.split("/")[1] not in ("symbol_error", "out_of_sequence", "lifespan")}
    assert set(others.values()) == {"0\n"}


def test_the_speed_of_a_netdev_is_known_while_it_has_carrier():
    assert rdma.speed_file(link(), 200) == "200000\n"
    assert rdma.speed_file(link(carrier=False), 200) == "-1\n"
