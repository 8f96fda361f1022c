# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node keeps in /etc/ansible/facts.d/gb10.fact of what was proven on it. Pure functions, run on the controller."""

from __future__ import annotations

import typing as t

# Result of a role's verify.yml, by its registered name, and what of it is worth keeping.
GATES = {
    "fabric": ("fabric_check", ("passed",)),
    "vllm": ("vllm_in_use", ("key",)),
    "model": ("model_proven", ("digest", "bytes")),
    "ray": ("ray_nodes", ()),
    "serve": ("serve_smoke", ("seconds", "system_fingerprint")),
}


def proof(plan: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any], now: str) -> dict[str, t.Any]:
    """What a run proved on a node, on top of what earlier runs proved since the same boot.

    Args:
        plan: the node's plan.
        variables: the node's variables, with ansible_facts.spark and the results that the roles' verify.yml registered.
        now: time of the run, ISO 8601 in UTC.

    Returns:
        {cluster, role, served_name, boot_id, kernel, gates: {role: {date, ...}}}. A gate that this run did not try keeps the
        date of an earlier run. It is gone when this run failed it, and when the node booted since: what was proven before a boot
        is unproven.
    """
    facts = (variables.get("ansible_facts") or {}).get("spark") or {}
    platform = facts.get("platform") or {}
    earlier = facts.get("proven") or {}
    gates = dict(earlier.get("gates") or {}) if earlier.get("boot_id") == platform.get("boot_id") else {}
    for role, (name, kept) in GATES.items():
        result = variables.get(name)
        if not isinstance(result, t.Mapping) or result.get("skipped"):
            continue
        if result.get("failed") or result.get("passed") is False:
            gates.pop(role, None)
            continue
        gates[role] = {"date": now, **{key: result[key] for key in kept if key in result}}
    return {
        "cluster": plan["cluster"],
        "role": plan["role"],
        "served_name": plan["profile"]["served_name"],
        "boot_id": platform.get("boot_id"),
        "kernel": platform.get("kernel"),
        "gates": gates,
    }
