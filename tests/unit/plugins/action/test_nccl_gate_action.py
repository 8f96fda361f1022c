# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import concurrent.futures
import stat
import types
from unittest import mock

import pytest
from ansible_collections.gb10.fleet.plugins.action import nccl_gate
from ansible_collections.gb10.fleet.plugins.action.nccl_gate import ActionModule, common_key

NODES = ["spark-a", "spark-b"]
ROW = {"collective": "all_reduce", "bytes": 1 << 30, "time_us": 1.0, "algbw": 23.0, "busbw": 23.0, "busbw_gbps": 184.0, "wrong": 0}


def returned(rank=0, error=None, **more):
    """What the module returns."""
    report = {"rank": rank, "stage": "measure" if error else "done", "error": error, "nccl": "2.28.9", "library": None}
    return {
        "changed": False, "report": report, "reports": [report, {**report, "rank": 1}] if rank == 0 else [report], "rows": [ROW] if rank == 0 else [],
        "log": {"transports": ["NET/IB"]}, "ranks": 2, "unread": [], "trouble": "", "seconds": 9.4, "way": "torch",
        "invocation": {"module_args": {"key": "secret", "rank": rank}}, **more,
    }


@pytest.fixture(name="run")
def run_fixture(tmp_path, monkeypatch):
    monkeypatch.setattr(nccl_gate.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))

    def run(result, node="spark-a", variables=None, **arguments):
        action = ActionModule.__new__(ActionModule)
        action._task = types.SimpleNamespace(args={"nodes": NODES, "address": "10.0.0.1", **arguments}, _uuid="task-1")
        with mock.patch("ansible.plugins.action.ActionBase.run", return_value={}), mock.patch.object(
            ActionModule, "_execute_module", return_value=result
        ) as execute:
            found = action.run(task_vars={"inventory_hostname": node, "ansible_play_hosts": NODES, "ansible_forks": 20, **(variables or {})})
        run.arguments = execute.call_args.kwargs["module_args"] if execute.called else None
        return found

    return run


def ids(result):
    return [(one["id"], one["severity"], one["node"]) for one in result["findings"]]


def test_a_good_run(run):
    result = run(returned())
    assert result["passed"] is True and ids(result) == [("nccl.bandwidth", "ok", None)]
    assert result["msg"] == "all_reduce 23.00 GB/s (184 Gb/s) of bus bandwidth"
    assert set(result) == {"changed", "reports", "rows", "log", "seconds", "way", "invocation", "findings", "passed", "msg"}
    assert result["invocation"]["module_args"] == {"rank": 0}
    assert run.arguments == {"nodes": NODES, "address": "10.0.0.1", "rank": 0, "key": run.arguments["key"]} and len(run.arguments["key"]) == 64


def test_the_second_node(run):
    result = run(returned(1), "spark-b")
    assert (result["passed"], result["findings"], "msg" in result) == (True, [], False) and run.arguments["rank"] == 1


def test_a_rank_that_failed_is_told_by_its_own_node(run):
    result = run(returned(1, "No module named 'torch'"), "spark-b")
    assert result["passed"] is False and ids(result) == [("nccl.missing", "fail", "spark-b")]
    (found,) = result["findings"]
    assert found["what"] == "The release has no torch with NCCL." and found["evidence"] == "No module named 'torch'" and found["cure"] and found["source"]
    first = returned()
    first["reports"][1]["error"] = "No module named 'torch'"
    result = run(first)
    assert result["passed"] is False and ids(result) == [("nccl.peer", "fail", "spark-a")]
    assert result["findings"][0]["evidence"] == "spark-b: No module named 'torch'"


@pytest.mark.parametrize(
    "error, expected", [("it burst", "nccl.peer"), ("rank 1 did not come within 30 s", "nccl.peer"), ("CUDA out of memory", "nccl.memory")]
)
def test_the_first_node_tells_its_own_cause_and_else_that_of_the_other(run, error, expected):
    first = returned(0, error, rows=[])
    first["reports"][1]["error"] = "it burst there"
    result = run(first)
    assert ids(result) == [(expected, "fail", "spark-a")]
    assert (result["findings"][0]["what"] == "The rank on spark-b failed.") == (expected == "nccl.peer")


def test_a_rank_that_left_no_report(run):
    first = returned()
    first["reports"][1].update(stage="unknown", error="left no report")
    result = run(first)
    assert result["passed"] is False and ids(result) == [("nccl.peer", "fail", "spark-a")]
    assert (result["findings"][0]["what"], result["findings"][0]["evidence"]) == ("The rank on spark-b failed.", "spark-b: left no report")


def test_nccls_own_words_come_before_the_error(run):
    result = run(returned(0, "DistBackendError: unhandled", rows=[], trouble="a:1:1 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 1"))
    assert ids(result) == [("nccl.path", "fail", "spark-a")] and "error 12" in result["findings"][0]["evidence"] and "msg" not in result


@pytest.mark.parametrize(
    "change, arguments, expected, passed",
    [
        ({"rows": [{**ROW, "busbw": 3.0}]}, {}, "nccl.wedge", False), ({"rows": [{**ROW, "busbw": 3.0}]}, {"rdma_gbps": "190"}, "nccl.build", False),
        ({"rows": [{**ROW, "busbw": 11.0}]}, {"topology": "ring"}, "nccl.bandwidth", True),
        ({"rows": [{**ROW, "busbw": 11.0}]}, {"topology": "switch"}, "nccl.one_rail", False),
        ({"rows": [{**ROW, "busbw": 11.0}]}, {"expected": "12", "minimum": 10}, "nccl.below_mark", True),
        ({}, {"nccl_version": "2.30.7"}, "nccl.build", False), ({}, {"nccl_version": ""}, "nccl.bandwidth", True),
        ({"log": {"transports": ["P2P"]}}, {}, "nccl.not_fabric", False), ({"rows": [], "unread": ["all is well"]}, {}, "nccl.not_understood", False),
        ({"ranks": 1}, {}, "nccl.single_rank", False),
    ],
)
def test_what_is_given_to_the_verdict(run, change, arguments, expected, passed):
    result = run(returned(**change), **arguments)
    assert ([one["id"] for one in result["findings"]], result["passed"]) == ([expected], passed)


def test_a_module_that_failed_passes_through(run):
    result = run({"failed": True, "msg": "no"})
    assert result == {"failed": True, "msg": "no"}


@pytest.mark.parametrize(
    "node, variables, expected",
    [
        ("spark-c", {}, "spark-c is not among nodes"), ("spark-a", {"ansible_play_hosts": ["spark-a"]}, "spark-b of this cluster failed above"),
        ("spark-a", {"ansible_forks": 1}, "run with --forks 2 or more"),
    ],
)
def test_ranks_that_would_wait_in_vain_are_not_started(run, node, variables, expected):
    result = run(returned(), node, variables)
    assert result["failed"] is True and expected in result["msg"] and run.arguments is None


def test_all_processes_of_a_task_have_one_key(tmp_path):
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        keys = set(pool.map(common_key, [str(tmp_path)] * 12, ["task-1"] * 12))
    assert len(keys) == 1 and len(keys.pop()) == 64
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert common_key(str(tmp_path), "task-2") not in keys | {common_key(str(tmp_path), "task-1")}
