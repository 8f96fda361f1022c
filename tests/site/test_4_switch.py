"""Another profile on a pair that serves: the old one ends, the new one answers, and check mode said so."""
from __future__ import annotations

import json

import yaml
from conftest import ROOT, on_node, playbook, run


def test_another_profile_takes_the_place_of_the_first(served, tmp_path):
    profile = yaml.safe_load((ROOT / "roles/serve/profiles/tiny.yml").read_text(encoding="utf-8"))
    profile.update(name="other", served_name="another-name")
    (tmp_path / "other.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    wanted = ("-e", json.dumps({"spark_profile": "other", "spark_profiles": str(tmp_path)}))

    foretold = playbook("site.yml", "--check", *wanted)
    assert foretold.status == 0, foretold.text
    done = playbook("site.yml", *wanted)
    assert done.status == 0, done.text
    assert done.changes and foretold.changes == done.changes
    assert "serves   another-name" in done.text
    units = on_node("spark-a", "systemctl list-units --plain --no-legend 'gb10-serve@*'; ls /etc/systemd/system/multi-user.target.wants")
    assert "gb10-serve@other.service" in units and "gb10-serve@tiny.service" not in units
    answer = run("scripts/ask", "-i", "lab", "What are you?")
    assert answer.returncode == 0 and "another-name at" in answer.stdout


def test_an_environment_that_changes_restarts_what_uses_it_and_check_mode_says_so(served):
    wanted = ("-e", json.dumps({"spark_nccl_environment": {"GLOO_LOG_LEVEL": "INFO"}}))
    foretold = playbook("site.yml", "--check", *wanted)
    assert foretold.status == 0, foretold.text
    tasks = {(task.rsplit(" : ", 1)[-1], host) for task, host in foretold.changes}
    for node in ("spark-a", "spark-b"):
        assert ("Run it with what is written now", node) in tasks
