"""Teardown puts the nodes back to what they were."""
from __future__ import annotations

from conftest import node_state, on_node, playbook

NETPLAN = "/etc/netplan/60-gb10-fabric.yaml"


def test_teardown_leaves_nothing_behind(bare_state, served):
    finished = playbook("teardown.yml")
    assert finished.status == 0, finished.text
    after = {node: node_state(node) for node in bare_state}
    for node, before in bare_state.items():
        for kind, lines in before.items():
            assert set(after[node][kind]) - set(lines) == set(), f"{node}: {kind} left behind"
            assert set(lines) - set(after[node][kind]) == set(), f"{node}: {kind} lost"


def test_a_second_teardown_changes_nothing(served):
    finished = playbook("teardown.yml")
    assert finished.status == 0, finished.text
    assert finished.changes == set()


def test_what_a_user_had_comes_back(served):
    """Files that lie where ours go are kept and put back byte for byte, with their mode."""
    mine = f"{NETPLAN} /etc/security/limits.d/60-gb10.conf"
    on_node("spark", f"printf 'network: {{version: 2}}\\n# mine\\n' > {NETPLAN} && chmod 600 {NETPLAN}")
    on_node("spark", "printf '# mine too\\n' > /etc/security/limits.d/60-gb10.conf && chmod 640 /etc/security/limits.d/60-gb10.conf")
    look = f"stat -c '%n %a %U %G' {mine}; sha256sum {mine}"
    before = on_node("spark-b", look)
    assert playbook("site.yml", "--tags", "host,fabric").status == 0
    assert "mine" not in on_node("spark-b", f"cat {mine}")
    assert playbook("teardown.yml").status == 0
    assert on_node("spark-b", look) == before
