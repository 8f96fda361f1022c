from __future__ import annotations

from ansible_collections.gb10.fleet.plugins.filter.proof import FilterModule

proof = FilterModule().filters()["proof"]
PLAN = {"cluster": "pair", "role": "head", "profile": {"served_name": "tiny"}}


def variables(boot="b1", earlier=None, **results):
    return {"ansible_facts": {"spark": {"platform": {"boot_id": boot, "kernel": "6.17"}, "proven": earlier or {}}}, **results}


def test_what_this_run_proved():
    record = proof(PLAN, variables(fabric_check={"passed": True, "findings": []}, serve_smoke={"seconds": 1.5, "content": "x"}), "now")
    assert record == {
        "cluster": "pair", "role": "head", "served_name": "tiny", "boot_id": "b1", "kernel": "6.17",
        "gates": {"fabric": {"date": "now", "passed": True}, "serve": {"date": "now", "seconds": 1.5}},
    }


def test_a_gate_passed_since_the_boot_stays():
    earlier = {"boot_id": "b1", "gates": {"fabric": {"date": "then", "passed": True}, "ray": {"date": "then"}}}
    record = proof(PLAN, variables(earlier=earlier, ray_nodes={"rc": 0}), "now")
    assert record["gates"] == {"fabric": {"date": "then", "passed": True}, "ray": {"date": "now"}}


def test_what_was_proven_before_the_last_boot_is_gone():
    assert proof(PLAN, variables(boot="b2", earlier={"boot_id": "b1", "gates": {"fabric": {"date": "then"}}}), "now")["gates"] == {}


def test_skipped_and_failed_prove_nothing():
    earlier = {"boot_id": "b1", "gates": {"fabric": {"date": "then", "passed": True}, "ray": {"date": "then"}, "serve": {"date": "then"}}}
    results = {"ray_nodes": {"skipped": True}, "fabric_check": {"passed": False}, "serve_smoke": {"failed": True}}
    assert proof(PLAN, variables(earlier=earlier, **results), "now")["gates"] == {"ray": {"date": "then"}}
    assert proof(PLAN, {}, "now")["boot_id"] is None
