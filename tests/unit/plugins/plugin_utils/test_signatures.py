# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._nccl_tests import flat_rows, parse_log, parse_nccl_tests
from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue, signatures
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nccl_tests"
NAMES = ["spark-a", "spark-b"]
GIB = 1 << 30
RDMA = {"transports": ["NET/IB"], "network": "IB", "devices": ["rocep1s0f0", "roceP2p1s0f0"]}


def read(name):
    """A recorded output."""
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def row(busbw, collective="all_reduce", size=GIB, wrong=0):
    return {"collective": collective, "bytes": size, "time_us": 1.0, "algbw": busbw, "busbw": busbw, "wrong": wrong}


def report(rank, build="ab" * 20, version="2.28.9", **more):
    return {"rank": rank, "nccl": version, "library": {"path": "/r/libnccl.so.2", "size_bytes": 9, "build_id": build}, "counters": {}, **more}


def measured(*rows, log=None, reports=None, ranks=2, **more):
    return {"rows": list(rows), "log": RDMA if log is None else log, "ranks": ranks, "reports": reports or [report(0), report(1)], **more}


def ids(*arguments, **options):
    return [one[0] for one in signatures.judge_nccl(*arguments, **options)]


def of_output(name, ranks=None):
    """A recorded run of nccl-tests as the gate has it."""
    parsed = parse_nccl_tests(read(name))
    return measured(*flat_rows(parsed), log=parsed["log"], ranks=ranks or len(parsed["ranks"]), unread=parsed["unread"])


def test_data_is_whole():
    data = signatures.signatures()
    for one in data["texts"]:
        assert set(one) == {"finding", "gates", "pattern", "source"} and one["finding"] in catalogue.catalogue() and one["source"], one
        assert set(one["gates"]) <= {"nccl", "rdma"} and re.compile(one["pattern"])
    for gate in data["bandwidth"].values():
        for shape, rows in gate.items():
            if shape == "unit":
                continue
            assert [one["from"] for one in rows] == sorted((one["from"] for one in rows), reverse=True) and rows[-1]["from"] == 0
            assert [catalogue.catalogue()[one["finding"]]["severity"] for one in rows] == ["ok", "warn"] + ["fail"] * (len(rows) - 2)
            assert "rdma_from" not in rows[-1] and all(one["source"] for one in rows)
    assert data["loss_counters"]["source"]


def test_every_finding_of_the_gate_is_made_somewhere_and_those_that_are_made_are_known():
    folder = Path(catalogue.FOLDER)
    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("signatures.yml", "signatures.py", "../action/nccl_gate.py"))
    made = set(re.findall(r"\bnccl\.[a-z_]+\b", text)) - {"nccl.py"}
    assert made == {name for name in catalogue.catalogue() if name.startswith("nccl.")}


@pytest.mark.parametrize(
    "busbw, expected",
    [
        (23.74, "nccl.bandwidth"), (21.875, "nccl.bandwidth"), (21.8, "nccl.below_mark"), (18.75, "nccl.below_mark"), (16.2, "nccl.slow"),
        (12.8, "nccl.one_rail"), (7.0, "nccl.packet_loss"), (3.04, "nccl.wedge"), (1.62, "nccl.wedge"), (0.4, "nccl.wedge"),
    ],
)
def test_figures_of_a_pair(busbw, expected):
    assert ids(measured(row(busbw)), NAMES) == [expected]


def test_the_lower_collective_at_its_largest_size_counts():
    rows = (row(3.0, size=8), row(23.0), row(23.5, "all_gather"), row(1.0, "all_gather", 8))
    (found,) = signatures.judge_nccl(measured(*rows), NAMES)
    assert found[0] == "nccl.bandwidth" and "23.00 GB/s (184 Gb/s)" in found[1]
    assert found[2] == "all_reduce 23.00 GB/s (184 Gb/s), all_gather 23.50 GB/s (188 Gb/s) of bus bandwidth via NET/IB"
    assert ids(measured(row(23.0), row(12.0, "all_gather")), NAMES) == ["nccl.one_rail"]


@pytest.mark.parametrize("rdma_gbps, expected", [(None, "nccl.wedge"), (26.6, "nccl.wedge"), (190.0, "nccl.build")])
def test_ib_write_bw_tells_a_wrong_build_from_a_wedge(rdma_gbps, expected):
    assert ids(measured(row(3.04)), NAMES, rdma_gbps=rdma_gbps) == [expected]


def test_a_ring_has_marks_of_its_own():
    assert [ids(measured(row(figure)), NAMES, shape="ring") for figure in (11.0, 9.0, 6.0, 2.0)] == [
        ["nccl.bandwidth"], ["nccl.below_mark"], ["nccl.slow"], ["nccl.wedge"],
    ]


def test_limits_of_the_user():
    assert ids(measured(row(12.0)), NAMES, expected=10.0, minimum=8.0) == ["nccl.bandwidth"]
    assert ids(measured(row(12.0)), NAMES, expected=15.0, minimum=8.0) == ["nccl.below_mark"]
    # Between the list's mark and a higher one of the user it fails, though no signature is known.
    assert ids(measured(row(23.0)), NAMES, expected=24.0, minimum=23.5) == ["nccl.slow"]


@given(st.floats(0, 1000), st.sampled_from(["pair", "ring"]), st.none() | st.floats(0, 1000))
def test_every_figure_has_a_row_and_is_good_from_the_mark_on(figure, shape, rdma):
    rows = signatures.signatures()["bandwidth"]["nccl"][shape]
    found = signatures.band("nccl", shape, figure, rdma_gbps=rdma)
    assert found in rows and (found is rows[0]) == (figure >= rows[0]["from"]) and figure >= found["from"]


def test_recorded_runs():
    # Two GPUs on one host: fast, and no proof of a fabric.
    assert ids(of_output("all_reduce__nccl_tests_2.19.6__h200_2__log"), NAMES) == ["nccl.not_fabric"]
    assert ids(of_output("all_reduce__nccl_tests_2.19.6__h200_1__single_rank"), NAMES) == ["nccl.single_rank"]
    assert ids(of_output("all_reduce__nccl_tests_2.19.6__h200_1__single_rank"), NAMES[:1]) == ["nccl.single_rank"]
    assert ids(of_output("all_reduce__nccl_tests_unknown__single_rank__scientific", 1), NAMES) == ["nccl.single_rank"]
    assert ids(of_output("all_reduce__nccl_tests_2.19.6__h200_2__unchecked"), NAMES) == ["nccl.not_validated"]
    sockets = measured(row(3.76), log=parse_log(read("log__nccl_2.28.9__two_hosts__sockets_rank0")))
    assert ids(sockets, NAMES) == ["nccl.sockets"]
    failed = read("all_reduce__nccl_tests_2.19.6__h200_2__three_asked")
    assert signatures.judge_nccl_failure("measure", "ended with 5", failed)[0] == "nccl.no_gpu"


def test_what_the_gate_itself_returned_on_real_gpus():
    gate = json.loads((FIXTURES / "gate__torch_2.11__nccl_2.28.9__h200_1.json").read_text(encoding="utf-8"))
    assert ids({**gate["single"]["spark-a"], "ranks": 1}, NAMES[:1]) == ["nccl.single_rank"]
    (found,) = signatures.judge_nccl({**gate["sockets"]["spark-a"], "ranks": 2}, NAMES)
    assert found[0] == "nccl.sockets" and found[2].endswith("all_gather 1.85 GB/s (15 Gb/s) of bus bandwidth via NET/Socket")
    # Both loaded the same build, and another one on the second node is seen.
    other = copy.deepcopy(gate["sockets"]["spark-a"])
    other["reports"][1]["library"]["build_id"] = "00" * 20
    assert ids({**other, "ranks": 2}, NAMES) == ["nccl.library_differs"]
    for node in NAMES:
        (report,) = [one for one in gate["ib"][node]["reports"] if one["rank"] == NAMES.index(node)]
        assert signatures.judge_nccl_failure(report["stage"], report["error"], "")[0] == "nccl.no_device"


def test_sockets_are_no_pass_however_fast():
    assert ids(measured(row(24.0), log={"transports": ["NET/Socket"]}), NAMES) == ["nccl.sockets"]
    assert ids(measured(row(24.0), log={"transports": [], "network": "Socket"}), NAMES) == ["nccl.sockets"]


def test_a_plugin_of_another_name_is_rdma_too():
    assert ids(measured(row(24.0), log={"transports": ["NET/IBext_v11"]}), NAMES) == ["nccl.bandwidth"]


def test_wrong_values_come_before_speed():
    (found,) = signatures.judge_nccl(measured(row(24.0), row(24.0, "all_gather", wrong=7)), NAMES)
    assert found[0] == "nccl.wrong_values" and found[1].startswith("7 values") and "all_gather" in found[2]
    assert ids(measured(row(24.0), row(24.0, "all_gather", wrong=None)), NAMES) == ["nccl.not_validated"]


@pytest.mark.parametrize("other", [report(1, build="cd" * 20), report(1, version="2.30.7"), {**report(1), "library": {"size_bytes": 8, "build_id": None}}])
def test_libraries_that_differ(other):
    (found,) = signatures.judge_nccl(measured(row(24.0), reports=[report(0), other]), NAMES)
    assert found[0] == "nccl.library_differs" and "spark-b" in found[2] and "ab" * 20 in found[2]


def test_another_nccl_than_the_toolchains():
    assert ids(measured(row(24.0)), NAMES, version="2.28.9") == ["nccl.bandwidth"]
    (found,) = signatures.judge_nccl(measured(row(24.0)), NAMES, version="2.30.7")
    assert found[0] == "nccl.build" and "2.28.9" in found[1] and "2.30.7" in found[1]


def test_libraries_that_nothing_is_known_of_are_not_compared():
    reports = [{"rank": rank, "nccl": None, "library": None} for rank in (0, 1)]
    assert ids(measured(row(24.0), reports=reports), NAMES, version="2.30.7") == ["nccl.bandwidth"]


def test_counters_of_lost_packets():
    lossy = [report(0), report(1, counters={"rocep1s0f0": {"out_of_sequence": 4000, "np_cnp_sent": 9}})]
    (found,) = signatures.judge_nccl(measured(row(16.0), reports=lossy), NAMES)
    assert found[0] == "nccl.packet_loss" and "out_of_sequence 4000" in found[2] and "np_cnp_sent" not in found[2]
    few = [report(0), report(1, counters={"rocep1s0f0": {"out_of_sequence": 4}})]
    (found,) = signatures.judge_nccl(measured(row(16.0), reports=few), NAMES)
    assert found[0] == "nccl.slow" and "out_of_sequence 4" in found[2]
    assert ids(measured(row(23.0), reports=lossy), NAMES) == ["nccl.bandwidth"]


def test_what_was_not_understood_is_never_well():
    assert ids(measured(unread=["8 2 float sum"]), NAMES) == ["nccl.not_understood"]
    assert ids(measured(row(24.0), unread=["8 2 float sum"]), NAMES) == ["nccl.bandwidth", "nccl.not_understood"]
    assert ids(measured(), NAMES) == ["nccl.no_result"]


CAUSES = ["nccl.gid", "nccl.path", "nccl.path", "nccl.gid", "nccl.gid", "nccl.path", "nccl.gid", "nccl.interface", "nccl.no_device"]


@pytest.mark.parametrize("line, expected", list(zip(read("log__nccl_unknown__error_lines").splitlines(), CAUSES, strict=True)))
def test_messages_of_nccl(line, expected):
    found = signatures.judge_nccl_failure("connect", "DistBackendError: NCCL error", f"a line before\n{line}\none after")
    assert found[0] == expected and found[2] == " ".join(line.split()) and found[1][-1] == "."


@pytest.mark.parametrize(
    "error, expected",
    [
        ("ModuleNotFoundError: No module named 'torch'", "nccl.missing"), ("libnccl.so.2: cannot open shared object file", "nccl.missing"),
        ("/opt/gb10/current/bin/python cannot be run: No such file or directory", "nccl.missing"),
        ("timeout: failed to run command '/opt/gb10/current/bin/python': No such file or directory", "nccl.missing"),
        ("RuntimeError: No CUDA GPUs are available", "nccl.no_gpu"), ("torch.OutOfMemoryError: CUDA out of memory", "nccl.memory"),
        ("/opt/nccl-tests/build/all_reduce_perf is not on this node", "nccl.no_program"), ("mpirun is not on this node", "nccl.no_program"),
        ("rank 1 did not come within 30 s", "nccl.peer"), ("no end after 90 s", "nccl.late"),
        ("mpirun -np 2 ... did not end within 5 s and was stopped", "nccl.late"), ("it burst", "nccl.failed"),
    ],
)
def test_errors_of_a_rank(error, expected):
    assert signatures.judge_nccl_failure("torch", error, "")[0] == expected


@given(st.text(max_size=200))
def test_no_text_raises(text):
    assert signatures.judge_nccl_failure("measure", text, text)[0] in catalogue.catalogue()
    signatures.read_text("rdma", text)
