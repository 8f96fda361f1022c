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


def found(severity: str, node: str | None, **more) -> dict:
    return {"id": "room.word", "severity": severity, "node": node, "what": "It is so.", "cluster": "pair", **more}


def test_a_block_has_everything_that_is_known():
    block = found("fail", "spark-a", evidence="mtu 1500\nmtu 9000", cause="A reason.", cure="A cure.", source="A page.")
    assert report.findings_blocks([block]) == [
        (
            "fail",
            "FAIL  spark-a  room.word\n"
            "      It is so.\n"
            "      evidence  mtu 1500\n"
            "                mtu 9000\n"
            "      cause     A reason.\n"
            "      cure      A cure.\n"
            "      source    A page.",
        )
    ]


def test_blocks_are_wrapped_and_evidence_is_bounded():
    block = found("warn", "spark-a", evidence="\n".join(f"line {number}" for number in range(10)), cure="word " * 60, cause="y" * 300)
    text = report.findings_blocks([block], width=60)[0][1]
    assert max(map(len, text.splitlines())) <= 60
    assert "line 5" in text and "line 6" not in text and "(4 more lines)" in text
    assert all(line.startswith("      ") for line in text.splitlines()[1:])


def test_the_same_of_several_nodes_is_one_block_and_evidence_of_each_is_named():
    same = [found("info", "spark-b", evidence="60"), found("info", "spark-a", evidence="60")]
    (severity, text), = report.findings_blocks(same)
    assert severity == "info" and text.startswith("INFO  spark-a, spark-b  room.word") and "evidence  60" in text
    same[0]["evidence"] = "100"
    text = report.findings_blocks(same)[0][1]
    assert "evidence  spark-a: 60\n" in text and "evidence  spark-b: 100" in text


def test_silenced_findings_come_last_with_their_reason_and_count_no_more():
    findings = [found("fail", "spark-a", silenced="Known since July."), found("warn", None), found("ok", "spark-b", evidence="nothing")]
    blocks = report.findings_blocks(findings)
    assert [severity for severity, text in blocks] == ["warn", "ok", "silenced"]
    assert blocks[0][1].startswith("WARN  cluster pair  room.word")
    assert "nothing" not in blocks[1][1]
    assert blocks[2][1].startswith("FAIL  spark-a  room.word  (silenced)") and "Known since July." in blocks[2][1]
    assert report.verdict(findings) == "warn"
    assert report.counts(findings) == {"fail": 0, "warn": 1, "info": 0, "ok": 1, "silenced": 1}


def test_the_count_line():
    findings = [found("fail", "a"), found("info", "a"), found("info", "b", silenced="x")]
    assert report.count_line(findings, 2, "/r/report.html") == "1 fail, 1 info, 1 silenced on 2 nodes; report: /r/report.html"
    assert report.count_line([found("ok", "a")], 1) == "nothing found on 1 node"


def test_an_unknown_severity_is_a_warning_and_missing_fields_are_empty():
    finding = report.normal({"id": "a.b", "severity": "terrible", "what": None, "node": ""})
    assert (finding["severity"], finding["what"], finding["node"], finding["silenced"]) == ("warn", "", None, None)


def test_no_text_commands_the_terminal():
    text = report.plain("\x1b[2J\x07a\tb\r\nc\u202ed")
    assert text == "\ufffd[2J\ufffda    b\nc\ufffdd"
    assert report.plain("x" * 5000) == report.plain(report.plain("x" * 5000))
    assert report.plain("HF_TOKEN=hf_abc OPENAI_API_KEY='k' max_tokens=16") == "HF_TOKEN=REDACTED OPENAI_API_KEY='REDACTED' max_tokens=16"
