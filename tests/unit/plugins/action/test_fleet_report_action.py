# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib.util
import json
import os
import stat
import types
from pathlib import Path
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleLookupError
from ansible_collections.gb10.fleet.plugins.action import fleet_report
from ansible_collections.gb10.fleet.plugins.action.fleet_report import ActionModule


def load_samples():
    path = Path(__file__).parents[2] / "fixtures" / "report" / "samples.py"
    spec = importlib.util.spec_from_file_location("report_samples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


samples = load_samples()


class Run:
    """Runs the action on a sample; keeps what was displayed."""

    def __init__(self, sample, columns=100):
        self.sample = sample
        self.shown = []
        self.display = types.SimpleNamespace(columns=columns, display=lambda text, color=None: self.shown.append((color, text)))

    def __call__(self, **arguments):
        self.shown.clear()
        action = ActionModule.__new__(ActionModule)
        action._task = types.SimpleNamespace(
            args={"findings": self.sample["findings"], "fleet": self.sample["fleet"], **arguments}, async_val=0, action="fleet_report"
        )
        action._loader = action._templar = None
        facts = self.sample["facts"]
        nodes = [node for cluster in self.sample["clusters"] for node in cluster["nodes"]]
        variables = {
            "groups": {"spark": nodes},
            "hostvars": {node: {"ansible_facts": {"spark": facts[node]} if node in facts else {}} for node in nodes},
        }
        lookup = mock.Mock()
        lookup.run.return_value = self.sample["clusters"]
        with mock.patch("ansible.plugins.action.ActionBase.run", return_value={}), mock.patch.object(
            ActionModule, "_display", self.display, create=True
        ), mock.patch.object(fleet_report.lookup_loader, "get", return_value=lookup):
            return action.run(task_vars=variables)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_healthy_pair(tmp_path):
    run = Run(samples.healthy_pair())
    result = run(folder=str(tmp_path / "new" / "folder"))
    assert not result.get("failed") and result["changed"] is False
    assert result["verdict"] == "ok" and result["counting"] == []
    assert [os.path.basename(path) for path in result["documents"]] == ["spark-a.json", "spark-b.json"]
    assert sorted(result["written"]) == sorted([*result["documents"], result["page"]])
    assert {mode(path) for path in result["written"]} == {0o644}
    assert json.loads(Path(result["documents"][0]).read_text(encoding="utf-8"))["role"] == "head"
    assert [color for color, text in run.shown] == ["green", "green"]
    assert run.shown[-1][1] == f"nothing found on 2 nodes; report: {result['page']}"


def test_a_faulty_pair_fails_with_one_sentence_and_shows_all_of_it(tmp_path):
    run = Run(samples.faulty_pair())
    result = run(folder=str(tmp_path))
    assert result["failed"] is True
    assert result["msg"] == (
        "2 findings stop this run, each with its cure above: gpu.gsp_mismatch on spark-b, mtu.rail_differs on spark-b."
    )
    colors = [color for color, text in run.shown]
    assert colors == ["red"] * 2 + ["yellow"] * 3 + ["cyan"] * 2 + ["dark gray", "red"]
    assert run.shown[-1][1].startswith("2 fail, 3 warn, 3 info, 1 silenced on 2 nodes; report: ")
    # A finding of the cluster as a whole is in the document of each of its nodes.
    for path in result["documents"]:
        assert "cluster.versions" in Path(path).read_text(encoding="utf-8")


def test_what_site_cures_does_not_stop_site(tmp_path):
    result = Run(samples.faulty_pair())(heals=True)
    assert [found["id"] for found in result["counting"]] == ["gpu.gsp_mismatch"]
    assert result["msg"].startswith("1 finding stops this run, each with its cure above: gpu.gsp_mismatch on spark-b")


def test_a_silenced_failure_stops_nothing():
    sample = samples.faulty_pair()
    for finding in sample["findings"]:
        finding["silenced"] = finding["silenced"] or "Known."
    result = Run(sample)()
    assert not result.get("failed") and result["counts"]["silenced"] == 9 and result["verdict"] == "ok"


def test_without_a_folder_no_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = Run(samples.healthy_pair())()
    assert (result["documents"], result["page"], result["written"], list(tmp_path.iterdir())) == ([], None, [], [])


def test_a_second_run_writes_only_what_differs_in_more_than_its_time(tmp_path):
    sample = samples.healthy_pair()
    run = Run(sample)
    times = iter(["2026-11-30T22:25:00Z", "2026-11-30T23:25:00Z", "2026-12-01T00:25:00Z"])
    with mock.patch.object(fleet_report.datetime, "datetime") as clock:
        clock.now.return_value.strftime.side_effect = lambda form: next(times)
        first = run(folder=str(tmp_path))
        before = {path: Path(path).read_bytes() for path in first["written"]}
        assert run(folder=str(tmp_path))["written"] == []
        assert {path: Path(path).read_bytes() for path in before} == before
        sample["facts"]["spark-b"]["memory"]["swappiness"] = 10
        third = run(folder=str(tmp_path))
    assert third["written"] == [str(tmp_path / "findings" / "spark-b.json")]
    assert json.loads(Path(third["written"][0]).read_text(encoding="utf-8"))["observed_at"] == "2026-12-01T00:25:00Z"
    assert not list(tmp_path.rglob(".report-*"))


def test_formats(tmp_path):
    run = Run(samples.faulty_pair())
    result = run(folder=str(tmp_path), formats=["json"])
    assert run.shown == [] and result["page"] is None and len(result["documents"]) == 2
    assert f"each with its cure in {tmp_path}/findings: " in result["msg"]
    result = run(folder=str(tmp_path / "page"), formats=["html"])
    assert result["documents"] == [] and result["written"] == [str(tmp_path / "page" / "report.html")]
    result = run(formats=["html"])
    assert result["msg"].startswith("2 findings stop this run: gpu.gsp_mismatch")
    with pytest.raises(AnsibleActionFail, match="pdf"):
        run(formats=["pdf"])


def test_a_folder_that_cannot_be_written_is_one_sentence_below_the_findings(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    run = Run(samples.faulty_pair())
    result = run(folder=str(tmp_path / "file"))
    assert result["failed"] is True and result["documents"] == [] and result["page"] is None
    assert result["msg"] == (
        f"Cannot write the report to {tmp_path}/file (Not a directory): set folder to one that the user of this run may write."
    )
    assert len(run.shown) == 9


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "report.html").mkdir()
    result = Run(samples.healthy_pair())(folder=str(tmp_path))
    assert "Is a directory" in result["msg"]
    with mock.patch.object(fleet_report.os, "replace", side_effect=PermissionError(1, "Operation not permitted")):
        result = Run(samples.healthy_pair())(folder=str(tmp_path / "other"))
    assert "Operation not permitted" in result["msg"]
    assert not list(tmp_path.rglob(".report-*"))


def test_a_relative_folder_starts_where_the_run_was_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Run(samples.healthy_pair())(folder="out")["page"] == str(tmp_path / "out" / "report.html")


def test_a_cluster_that_limit_left_out_is_not_in_the_report(tmp_path):
    sample = samples.everything()
    for node in ("spark-11", "spark-12", "spark-13"):
        del sample["facts"][node]
    sample["findings"] = [finding for finding in sample["findings"] if finding["cluster"] != "ring"]
    result = Run(sample)(folder=str(tmp_path))
    assert "spark-11" not in Path(result["page"]).read_text(encoding="utf-8")
    assert [os.path.basename(path) for path in result["documents"]] == [
        "spark-a.json", "spark-b.json", "spark-01.json", "spark-02.json", "spark-03.json", "spark-04.json", "spark-z.json",
    ]


def test_a_node_that_did_not_answer_has_a_document(tmp_path):
    result = Run(samples.unplanned())(folder=str(tmp_path))
    content = json.loads((tmp_path / "findings" / "spark-b.json").read_text(encoding="utf-8"))
    assert result["failed"] and content["looked_at"] is False and content["facts"] == {} and content["verdict"] == "fail"


def test_many_findings_are_named_in_part():
    found = [samples.finding("a.b", "fail", f"n{number}", "c", "x") for number in range(9)]
    assert fleet_report.sentence(found, None).endswith("a.b on n4, 4 more.")
    assert fleet_report.sentence([samples.finding("a.b", "fail", None, None, "x")], "above").endswith("a.b on the fleet.")


def test_an_inventory_that_has_no_clusters_is_one_sentence():
    run = Run(samples.healthy_pair())
    with mock.patch.object(fleet_report.lookup_loader, "get"), pytest.raises(AnsibleActionFail, match="no group spark"):
        action = ActionModule.__new__(ActionModule)
        action._loader = action._templar = None
        fleet_report.lookup_loader.get.return_value.run.side_effect = AnsibleLookupError("The inventory has no group spark.")
        action._clusters({}, {}, [])
    assert run.shown == []
