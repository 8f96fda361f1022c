# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ib_write_bw
import nccl_tests
import pytest
import rails


def test_a_perftest_row_is_printed_as_the_captured_one(capsys):
    ib_write_bw.rows(ib_write_bw.options(["-s", "1048576", "-D", "6", "--report_gbits", "192.168.100.10"]), 13.33)
    assert capsys.readouterr().out == " 1048576    9534             0.00               13.33  \t\t   0.001589\n"


def test_a_test_of_a_number_of_messages_has_a_peak(capsys):
    ib_write_bw.rows(ib_write_bw.options(["--report_gbits"]), 97.98)
    assert capsys.readouterr().out.split() == ["65536", "5000", "97.98", "97.98", "0.186882"]


def test_gids_in_perftests_octets():
    assert ib_write_bw.octets("0000:0000:0000:0000:0000:ffff:c0a8:640a") == "00:00:00:00:00:00:00:00:00:00:255:255:192:168:100:10"


def test_the_gid_that_is_picked_without_asking():
    port = rails.Port(
        "rocep1s0f0", "enp1s0f0np0", True, 9000,
        {0: "fe80::1", 1: "fe80::1", 2: "::ffff:192.168.100.10", 3: "::ffff:192.168.100.10"},
        {0: "IB/RoCE v1", 1: "RoCE v2", 2: "IB/RoCE v1", 3: "RoCE v2"},
    )
    assert port.gid_index() == 3 and port.active_mtu() == 4096
    assert rails.ipv4_of(port.gids[3]) == "192.168.100.10" and rails.ipv4_of(port.gids[1]) is None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", ["mlx5_1", "mlx5_10", "roceP2p1s0f0"]),
        ("mlx5_1", ["mlx5_1", "mlx5_10"]),
        ("=mlx5_1", ["mlx5_1"]),
        ("^=mlx5_1", ["mlx5_10", "roceP2p1s0f0"]),
        ("=roceP2p1s0f0:1", ["roceP2p1s0f0"]),
        ("rocep1", []),
    ],
)
def test_devices_are_chosen_as_nccl_does(monkeypatch, selector, expected):
    monkeypatch.setattr(rails, "devices", lambda: ["mlx5_1", "mlx5_10", "roceP2p1s0f0"])
    monkeypatch.setenv("NCCL_IB_HCA", selector)
    assert nccl_tests.chosen_devices() == expected


def test_sizes_of_nccl_tests():
    assert [nccl_tests.size_of(text) for text in ("8", "32M", "16G")] == [8, 32 * 2**20, 16 * 2**30]


def test_a_pair_with_two_rails_reaches_24_gigabytes(capsys):
    nccl_tests.print_rows("all_reduce", nccl_tests.options(["-b", "1G", "-e", "16G", "-f", "2"]), 2, "IB", 2 * 97.98)
    average = next(line for line in capsys.readouterr().out.splitlines() if "Avg bus bandwidth" in line)
    assert 23.5 < float(average.split(":")[1]) < 24.1


def test_a_rank_alone_has_no_bus_bandwidth(capsys):
    nccl_tests.print_rows("all_reduce", nccl_tests.options(["-b", "1M", "-e", "16M", "-f", "4"]), 1, "IB", 0.0)
    assert "# Avg bus bandwidth    : 0 \n" in capsys.readouterr().out
