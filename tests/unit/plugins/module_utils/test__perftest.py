# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.gb10.fleet.plugins.module_utils._perftest import judge_rail, parse_bandwidth


def test_case_13_a_rail_at_13_gbps_is_low_and_the_cure_is_a_reboot_of_both(recorded):
    rows = parse_bandwidth(recorded("ib_write_bw__perftest_unknown__gb10__wedge.txt"))
    assert [row["average_gbps"] for row in rows] == [13.33, 13.23]
    assert [row["iterations"] for row in rows] == [9534, 9465]
    sentence = judge_rail(rows)
    assert "13.23 Gb/s where about 98 are expected" in sentence
    assert "reboot both nodes with the cable in" in sentence


def test_case_13_a_header_without_a_row_is_a_failure(recorded):
    header = recorded("ib_write_bw__perftest_unknown__gb10__wedge.txt").splitlines()[0]
    assert parse_bandwidth(header) == []
    assert "no result row" in judge_rail([])


def test_a_healthy_rail_passes_with_peak_zero():
    row = " 65536      882805           0.00               92.57                0.176554\n"
    rows = parse_bandwidth(row)
    assert rows == [{"bytes": 65536, "iterations": 882805, "average_gbps": 92.57, "million_messages": 0.176554}]
    assert judge_rail(rows) is None


def test_between_wedge_and_healthy_is_no_wedge():
    sentence = judge_rail(parse_bandwidth(" 65536 1000 0.00 52.10 0.1\n"))
    assert "52.1 Gb/s" in sentence
    assert "reboot" not in sentence
