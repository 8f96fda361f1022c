# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import jsonschema
import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils import document, report
from hypothesis import HealthCheck, given, settings, strategies as st

ROOT = Path(__file__).parents[4]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "node-document.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def load_samples():
    path = ROOT / "tests" / "unit" / "fixtures" / "report" / "samples.py"
    spec = importlib.util.spec_from_file_location("report_samples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


samples = load_samples()


def make(node="spark-a", facts=None, findings=(), cluster="pair", role="head"):
    return document.node_document(node, cluster, role, samples.SPARK if facts is None else facts, findings, samples.OBSERVED_AT)


def check(content):
    """Valid by the schema, and not larger than it may be."""
    text = document.text_of(content)
    assert len(text.encode("utf-8")) <= document.LIMIT
    VALIDATOR.validate(json.loads(text))
    return json.loads(text)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", ["healthy_pair", "faulty_pair", "ring", "switch", "bare", "unplanned", "hostile", "everything"])
def test_documents_of_the_samples_are_valid_and_whole(name):
    sample = getattr(samples, name)()
    for cluster in sample["clusters"]:
        for node in cluster["nodes"]:
            found = [finding for finding in sample["findings"] if finding["node"] in (node, None)]
            content = check(make(node, sample["facts"].get(node, {}), found, cluster["name"]))
            assert content["cut"] == []
            assert content["looked_at"] is (node in sample["facts"])
            assert len(content["findings"]) == len(found)


def test_an_ordinary_document():
    sample = samples.faulty_pair()
    found = [finding for finding in sample["findings"] if finding["node"] in ("spark-b", None)]
    content = check(make("spark-b", sample["facts"]["spark-b"], found, role="worker"))
    assert (content["schema_version"], content["kind"], content["node"], content["cluster"], content["role"]) == (
        1, "gb10.fleet.node", "spark-b", "pair", "worker",
    )
    assert content["collector"]["name"] == "gb10.fleet" and content["collector"]["version"].count(".") == 2
    assert content["verdict"] == "fail"
    assert content["counts"] == {"fail": 2, "warn": 3, "info": 2, "ok": 0, "silenced": 0}
    assert [finding["severity"] for finding in content["findings"]] == ["fail"] * 2 + ["warn"] * 3 + ["info"] * 2
    assert content["facts"]["gpu"]["devices"][0]["gsp_firmware"] == "580.126.09"
    assert content["facts"] == json.loads(json.dumps(sample["facts"]["spark-b"]))


def test_a_role_that_is_none_and_a_host_in_no_cluster():
    content = check(make(cluster=None, role=None))
    assert content["cluster"] is None and content["role"] is None


def test_long_lists_are_cut_with_a_count():
    facts = {"services": {"ports": [{"port": number, "address": "0.0.0.0", "protocol": "tcp"} for number in range(60000)]}}
    content = check(make(facts=facts))
    assert content["cut"] == [{"path": "/facts/services/ports", "kept": len(content["facts"]["services"]["ports"]), "total": 60000}]
    assert content["facts"]["services"]["ports"][0]["port"] == 0


def test_many_findings_are_cut_and_all_counted():
    found = [samples.finding("a.b", "info", "spark-a", "pair", f"{number} " + "x" * 1900, evidence="y" * 1900) for number in range(400)]
    found.append(samples.finding("z.worst", "fail", "spark-a", "pair", "The worst."))
    content = check(make(findings=found))
    assert content["counts"]["info"] == 400
    assert content["findings"][0]["id"] == "z.worst"
    assert content["facts"]["gpu"]["driver"] == "580.142"
    assert any(cut["path"].startswith("/findings") for cut in content["cut"])


def test_a_deep_and_wide_tree_leaves_no_facts_rather_than_no_document():
    tree = "leaf"
    for _level in range(12):
        tree = {f"{number}": tree for number in range(2)}
    wide = {f"subset{number}": {"a": ["\x00" * 50] * 40, "b": tree} for number in range(3)}
    content = check(make(facts=wide))
    assert content["cut"]


def test_what_json_has_not():
    facts = {"odd": {"nan": math.nan, "big": 10**5000, "bytes": b"\xff", "set": {1}, 5: "number", "lone": "\ud800", "none": None, "flag": True}}
    content = check(make(facts=facts))
    assert content["facts"]["odd"] == {
        "nan": None, "big": None, "bytes": "\ufffd", "set": [1], "5": "number", "lone": "\ufffd", "none": None, "flag": True,
    }


def test_secrets_do_not_get_in():
    facts = {
        "toolchain": {
            "environment": [{"name": "HF_TOKEN", "value": "hf_geheim"}, {"name": "NCCL_DEBUG", "value": "INFO"}],
            "release": {"key": "cuda-13.0"}, "api_key": "geheim", "password": ["geheim"],
        }
    }
    found = [samples.finding("environment.stray", "warn", "spark-a", "pair", "X", evidence="/etc/environment:3: HF_TOKEN=hf_geheim Bearer geheim")]
    content = check(make(facts=facts, findings=found))
    assert "geheim" not in json.dumps(content)
    assert content["facts"]["toolchain"]["environment"][1]["value"] == "INFO"
    assert content["facts"]["toolchain"]["release"]["key"] == "cuda-13.0"
    assert "HF_TOKEN=REDACTED" in content["findings"][0]["evidence"]


@pytest.mark.parametrize("node", ["../../etc/passwd", "a/b", "", ".", "..", ".hidden", "x" * 300, "n\u00f6de", "a b", "C:\\x"])
def test_no_name_leads_out_of_the_folder(node):
    name = document.file_name(node)
    assert "/" not in name and "\\" not in name and not name.startswith(".") and len(name) < 130
    assert name != document.file_name(node + "_")


def test_a_plain_name_is_the_name_of_the_file():
    assert document.file_name("spark-a.example.net") == "spark-a.example.net.json"
    assert document.file_name("a/b") != document.file_name("a_b")


def test_the_collector_of_an_installed_collection(tmp_path, monkeypatch):
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": "9.8.7"}}), encoding="utf-8")
    monkeypatch.setattr(document, "COLLECTION", tmp_path)
    assert document.collector() == {"name": "gb10.fleet", "version": "9.8.7"}


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=60), st.binary(max_size=10))
KEYS = st.one_of(st.text(max_size=20), st.integers(), st.sampled_from(document.SUBSETS))
TREES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(KEYS, inner, max_size=6)), max_leaves=40)
FINDINGS = st.lists(st.dictionaries(st.one_of(st.sampled_from(report.FIELDS), st.text(max_size=8)), TREES, max_size=12), max_size=8)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.text(max_size=400), st.one_of(st.none(), st.text()), st.dictionaries(KEYS, TREES, max_size=8), FINDINGS, st.integers(min_value=1, max_value=4000)
)
def test_any_facts_and_findings_give_a_bounded_valid_document(node, cluster, facts, findings, times):
    facts = {**facts, "many": list(facts.values()) * times if times > 3900 else []}
    check(make(node, facts, findings * (times // 100 + 1), cluster))
