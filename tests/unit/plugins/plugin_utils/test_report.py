from __future__ import annotations

import json
import shlex

import pytest
from ansible_collections.gb10.fleet.plugins.filter.findings_text import FilterModule as FindingsText
from ansible_collections.gb10.fleet.plugins.filter.plan_text import FilterModule as PlanText
from ansible_collections.gb10.fleet.plugins.filter.summary_text import FilterModule as SummaryText
from ansible_collections.gb10.fleet.plugins.plugin_utils import report

WARNING = {"id": "b", "severity": "warn", "node": "spark-a", "what": "The rail is slow.", "cure": "Reboot both nodes."}
FAILURE = {"id": "a", "severity": "fail", "node": None, "what": "No profile is chosen.", "cure": None}
FINE = {"id": "c", "severity": "ok", "node": "spark-b", "what": "All is well."}


def plan(node: str, role: str) -> dict:
    last = 10 if role == "head" else 11
    return {
        "cluster": "pair",
        "nodes": ["spark-a", "spark-b"],
        "role": role,
        "tensor_parallel": 2,
        "mtu": 9000,
        "address": f"192.168.100.{last}",
        "rails": [
            {"netdev": "enp1s0f0np0", "device": "rocep1s0f0", "cage": "p0", "address": f"192.168.100.{last}", "prefix": 24},
            {"netdev": "enP2p1s0f0np0", "device": "roceP2p1s0f0", "cage": "p0", "address": f"192.168.101.{last}", "prefix": 24},
        ],
        "profile": {"name": "tiny", "served_name": "tiny-model"},
        "toolchain": {"name": "cpu"},
    }


@pytest.fixture
def fleet() -> dict:
    return {"nodes": {"spark-a": plan("spark-a", "head"), "spark-b": plan("spark-b", "worker")}, "findings": [FINE, WARNING]}


def test_findings_come_worst_first_with_node_and_cure():
    assert report.findings_text([FINE, WARNING, FAILURE]).splitlines() == [
        "FAIL No profile is chosen.",
        "WARN spark-a: The rail is slow. Reboot both nodes.",
        "OK   spark-b: All is well.",
    ]


def test_findings_of_one_severity():
    assert report.findings_text([FINE, WARNING, FAILURE], ["warn"]) == "WARN spark-a: The rail is slow. Reboot both nodes."
    assert report.findings_text([FINE], ["fail"]) == ""


def test_plan_has_a_line_for_each_rail_and_the_findings_below(fleet):
    lines = report.plan_text(fleet).splitlines()
    assert lines[0] == "cluster pair: profile tiny, toolchain cpu, tensor parallel 2, MTU 9000"
    assert lines[2].split() == ["spark-a", "head", "p0", "enp1s0f0np0", "rocep1s0f0", "192.168.100.10/24"]
    assert lines[5].split() == ["spark-b", "worker", "p0", "enP2p1s0f0np0", "roceP2p1s0f0", "192.168.101.11/24"]
    assert lines[-1].startswith("WARN spark-a")
    assert len(lines) == 7


def test_plan_of_a_node_alone_shows_its_address(fleet):
    alone = {**plan("spark-a", "head"), "rails": [], "address": "127.0.0.1"}
    assert "127.0.0.1/32" in report.plan_text({"nodes": {"spark-a": alone}, "findings": []})


def test_ssh_command_follows_the_inventory():
    variables = {
        "ansible_host": "198.51.100.7",
        "ansible_user": "spark",
        "ansible_port": 2222,
        "ansible_ssh_private_key_file": "/keys/a key",
        "ansible_ssh_common_args": "-o UserKnownHostsFile=/keys/known_hosts",
    }
    assert shlex.split(report.ssh_command(variables, "spark-a")) == [
        "ssh", "-i", "/keys/a key", "-p", "2222", "-o", "UserKnownHostsFile=/keys/known_hosts", "spark@198.51.100.7",
    ]
    assert report.ssh_command({}, "spark-a") == "ssh spark-a"


def test_a_request_from_outside_reads_the_key_through_ssh():
    card = report.connection(plan("spark-a", "head"), {"spark_listen": "0.0.0.0", "ansible_host": "198.51.100.7", "spark_port": 9000}, "spark-a")
    assert card["url"] == "http://198.51.100.7:9000/v1"
    assert card["model"] == "tiny-model"
    assert card["curl"].startswith("curl -sS --fail-with-body --max-time 120 -H @<(ssh 198.51.100.7 ")
    assert "/etc/gb10/credentials/api-key" in card["curl"]


def test_a_request_to_a_head_that_listens_on_loopback_runs_there():
    card = report.connection(plan("spark-a", "head"), {"ansible_host": "198.51.100.7"}, "spark-a", 'Say "hi"')
    assert card["url"] == "http://127.0.0.1:8000/v1"
    remote = shlex.split(card["curl"])
    assert remote[:2] == ["ssh", "198.51.100.7"]
    body = shlex.split(remote[2])[-1]
    assert json.loads(body)["messages"] == [{"role": "user", "content": 'Say "hi"'}]


def test_summary_says_what_was_answered(fleet):
    smoke = {"content": " I am a tiny model. ", "seconds": 1.25, "usage": {"total_tokens": 20}}
    text = report.summary_text(fleet, {"spark-a": {"serve_smoke": smoke}, "spark-b": {}})
    assert text.splitlines()[0] == "cluster pair (spark-a, spark-b), tensor parallel 2"
    assert "says     I am a tiny model.  (1.2 s, 20 tokens)" in text
    assert "key      /etc/gb10/credentials/api-key on spark-a" in text


def test_summary_does_not_claim_what_was_not_seen(fleet):
    assert "no completion was seen" in report.summary_text(fleet, {"spark-a": {}, "spark-b": {}})


def test_filters_are_offered_by_their_names(fleet):
    for module, name in ((FindingsText, "findings_text"), (PlanText, "plan_text"), (SummaryText, "summary_text")):
        assert list(module().filters()) == [name]
