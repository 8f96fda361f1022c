"""From bare nodes to a served model: check mode tells the truth, the second run changes nothing."""
from __future__ import annotations

from conftest import hostvars, node_state, on_node, playbook, run


def test_check_mode_on_bare_nodes_goes_to_the_end_and_changes_nothing(bare_state, checked):
    assert checked.status == 0, checked.text
    assert {node: node_state(node) for node in bare_state} == bare_state


def test_site_serves(served):
    assert served.status == 0, served.text
    assert "tensor parallel 2" in served.text
    assert "  says " in served.text


def test_check_mode_named_the_changes_that_the_run_made(checked, served):
    assert checked.changes
    assert checked.changes == served.changes


def test_second_run_changes_nothing(served):
    again = playbook("site.yml")
    assert again.status == 0, again.text
    assert again.changes == set()
    assert all(counters["changed"] == 0 for counters in again.recap.values())


def test_verify_holds(served):
    verified = playbook("verify.yml")
    assert verified.status == 0, verified.text
    assert verified.changes == set()


def test_a_completion_from_outside_needs_the_key(served):
    answer = run("scripts/ask", "-i", "lab", "What are you?")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "tensor parallel size 2" in answer.stdout
    address = hostvars()["spark-a"]["ansible_host"]
    refused = run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://{address}:8000/v1/models")
    assert refused.stdout == "401"


def test_both_hosts_hold_a_rank(served):
    for node in ("spark-a", "spark-b"):
        assert "RayWorker" in on_node(node, "ps -eo args")


def test_no_secret_shows(served):
    loud = playbook("site.yml", "--diff", "-vvv")
    assert loud.status == 0, loud.text
    for secret in ("api-key", "ray-token"):
        value = on_node("spark-a", f"cat /etc/gb10/credentials/{secret}").strip()
        assert len(value) >= 32
        assert value not in served.text
        assert value not in loud.text
        for node in ("spark-a", "spark-b"):
            assert value not in on_node(
                node, "ps -eo args; journalctl --no-pager -o cat; find /etc/gb10 /etc/systemd -type f -not -path '*/credentials/*' -exec cat {} +"
            )
