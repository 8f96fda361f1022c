# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._nccl_tests import flat_rows, parse_log, parse_nccl_tests, parse_row
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nccl_tests"
H200 = "nccl_tests_2.19.6__h200_2"


def read(name):
    """A recorded output."""
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def test_a_good_run():
    found = parse_nccl_tests(read(f"all_reduce__{H200}"))
    assert (found["collective"], found["version"], found["nccl"], found["validated"]) == ("all_reduce", "2.19.6", "2.28.3", True)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    assert found["ranks"][1] == {"rank": 1, "host": "node-a", "device": 1, "bus": "0000:00:07", "name": "NVIDIA H200"}
    assert len(found["rows"]) == 13 and (found["out_of_bounds"], found["average"], found["unread"]) == (0, 61.9664, [])
    assert found["rows"][-1] == {
        "bytes": 134217728, "count": 33554432, "type": "float",
        "out_of_place": {"time_us": 473.55, "algbw": 283.43, "busbw": 283.43, "wrong": 0},
        "in_place": {"time_us": 470.02, "algbw": 285.56, "busbw": 285.56, "wrong": 0},
    }


def test_the_average_of_a_run_is_that_of_its_flat_rows():
    found = parse_nccl_tests(read(f"all_gather__{H200}"))
    rows = flat_rows(found)
    assert sum(row["busbw"] for row in rows) / len(rows) == pytest.approx(found["average"], abs=0.01)
    assert rows[-1] == {"collective": "all_gather", "bytes": 1073741824, "time_us": 1912.835, "algbw": 561.825, "busbw": 280.915, "wrong": 0}


def test_a_rank_alone():
    found = parse_nccl_tests(read("all_reduce__nccl_tests_2.19.6__h200_1__single_rank"))
    assert len(found["ranks"]) == 1 and found["average"] == 0
    assert {row["busbw"] for row in flat_rows(found)} == {0}


def test_figures_in_scientific_notation_between_lines_of_the_log():
    found = parse_nccl_tests(read("all_reduce__nccl_tests_unknown__single_rank__scientific"))
    assert len(found["rows"]) == 4 and found["unread"] == [] and found["average"] == 0
    assert found["rows"][-1]["in_place"] == {"time_us": 0.1, "algbw": 1e6, "busbw": 0.0, "wrong": 0}
    assert found["log"]["ranks"] == 1


def test_values_that_were_not_compared_are_not_right():
    found = parse_nccl_tests(read(f"all_reduce__{H200}__unchecked"))
    assert found["validated"] is False and found["out_of_bounds"] == 0
    assert {row["wrong"] for row in flat_rows(found)} == {None}


def test_more_gpus_than_there_are():
    found = parse_nccl_tests(read(f"all_reduce__{H200}__three_asked"))
    assert found["rows"] == [] and found["average"] is None
    assert found["errors"][0] == "Invalid number of GPUs: 3 requested but only 2 were found."


def test_log_of_a_run_on_one_host():
    log = parse_nccl_tests(read(f"all_reduce__{H200}__log"))["log"]
    assert (log["version"], log["network"], log["bootstrap"], log["ranks"], log["nodes"]) == ("2.28.3", "Socket", "eth0", 2, 1)
    assert log["transports"] == ["P2P"] and log["devices"] == []


def test_log_of_sockets():
    for rank in (0, 1):
        log = parse_log(read(f"log__nccl_2.28.9__two_hosts__sockets_rank{rank}"))
        assert (log["version"], log["network"], log["bootstrap"], log["ranks"], log["nodes"]) == ("2.28.9", "Socket", "lo", 2, 2)
        assert (log["transports"], log["net_devices"], log["warnings"]) == (["NET/Socket"], [0], [])


def test_log_of_rdma():
    log = parse_log(
        "a:1:1 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]; OOB enP7s7:10.0.0.1<0>\n"
        "a:1:1 [0] NCCL INFO Using network IB\n"
        "a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"
        "a:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1\n"
        "a:1:1 [0] NCCL INFO Channel 02/0 : 0[0] -> 1[0] [send] via NET/IBext_v11/1/GDRDMA\n"
    )
    assert log["devices"] == ["rocep1s0f0", "roceP2p1s0f0"] and log["transports"] == ["NET/IB", "NET/IBext_v11"] and log["net_devices"] == [0, 1]


def test_warnings_of_nccl():
    log = parse_log(read("log__nccl_unknown__error_lines"))
    assert len(log["warnings"]) == 7 and log["warnings"][0] == "Call to ibv_modify_qp failed with error No such device"


HEAD_BEFORE_2_13 = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 \n" \
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"


def test_the_column_error_of_old_versions_is_no_count():
    row = "   134217728      33554432   float     sum    473.5  283.43  283.43  2e-07    470.0  285.56  285.56  1e+01\n"
    rows = flat_rows(parse_nccl_tests(f"{HEAD_BEFORE_2_13}{row} Out of bounds values : 0 OK\n# Out of bounds values : 0 OK\n"))
    assert [row["wrong"] for row in rows] == [0]
    rows = flat_rows(parse_nccl_tests(f"{HEAD_BEFORE_2_13}{row}# Out of bounds values : 3 FAILED\n"))
    assert [row["wrong"] for row in rows] == [3]


@pytest.mark.parametrize(
    "line, type_, busbw",
    [
        # before 2.12: no root; all_gather: no operation
        ("1048576 262144 float sum 22.07 47.52 47.52 0e+00 21.78 48.15 48.15 0e+00", "float", (47.52, 48.15)),
        ("1048576 131072 float 23.12 45.36 22.68 0 20.50 51.14 25.57 0", "float", (22.68, 25.57)),
        # 2.18 with figures of each iteration, with times of day
        ("8 2 float sum -1 13.5 1.00 2.00 0 13.0 14.0 13.9 1.20 14.2 3.00 4.00 0 14.0 15.0 14.9 1.10", "float", (2.0, 4.0)),
        ("8 2 bfloat16 sum -1 13.5 1.00 2.00 0 14.2 3.00 4.00 N/A 2026-11-30 12:00:00", "bfloat16", (2.0, 4.0)),
        # in place only
        ("8 2 float sum -1 13.5 1.00 2.00 1e+06", "float", (2.0, None)),
    ],
)
def test_rows_of_other_versions(line, type_, busbw):
    row = parse_row(line)
    assert row["type"] == type_
    assert (row["out_of_place"]["busbw"], row["in_place"] and row["in_place"]["busbw"]) == busbw


@pytest.mark.parametrize(
    "line",
    [
        "8 2 float sum -1 13.5 nan 2.00 0", "8 2 float sum -1 13.5 1.00 inf 0", "8 2 float sum -1 13.5 1.00 2.00 many", "8 2 float sum -1 13.5 1.00",
        "8 2 float sum -1 1 2 3 4 5 6 7 8 9 10 11 12",
    ],
)
def test_rows_that_are_not_understood_are_kept_apart(line):
    found = parse_nccl_tests(line)
    assert found["rows"] == [] and found["unread"] == [line]


@pytest.mark.parametrize("line", ["", "# 8 2 float", "Avg bus bandwidth", "10.0.0.1 2 3 4 5 6", f"{'9' * 5000} 2 float sum -1 1 2 3 4"])
def test_lines_that_are_no_rows(line):
    found = parse_nccl_tests(line)
    assert found["rows"] == [] and found["unread"] == []


PIECES = (
    "\n", " ", "8 ", "1048576 ", "float ", "sum ", "-1 ", "13.5 ", "1e+06 ", "N/A ", "nan ", "inf ", "²", "9" * 30, "# Out of bounds values : ",
    "# Avg bus bandwidth    : ", "# Collective test starting: ", "all_reduce_perf", "# nccl-tests version 2.19 nccl-library=", "22803", "busbw  error",
    "# validation: 1", "#  Rank  0 Group  0 Pid   1 on     a device  0 [0] x", "NCCL WARN ", "NCCL INFO ", "Channel 00/0 : 0[0] -> 1[0] [send] via ",
    "NET/IB/0", "NET/Socket/0", "NET/IB : Using [0]a:1/RoCE", "nRanks 2 nNodes 2", "nranks 1 ", "2026-11-30 12:00:00",
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=60).map("".join))


@given(TEXTS)
def test_no_text_raises_and_figures_are_numbers(text):
    found = parse_nccl_tests(text)
    for row in flat_rows(found):
        assert all(math.isfinite(row[name]) for name in ("time_us", "algbw", "busbw"))
        assert row["wrong"] is None or isinstance(row["wrong"], int)
    assert len(found["unread"]) <= 20 and len(found["errors"]) <= 20


@given(st.integers(0, 400), st.sampled_from(sorted(FIXTURES.glob("all_*.txt"))))
def test_an_output_that_is_cut_off_has_no_wrong_rows(place, path):
    text = path.read_text(encoding="utf-8")
    whole = parse_nccl_tests(text)["rows"]
    lines = text.splitlines()
    cut = "\n".join(lines[: place % len(lines)])
    rows = parse_nccl_tests(cut)["rows"]
    assert rows == whole[: len(rows)]
