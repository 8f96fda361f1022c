# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read: findings, the plan and the summary as text. Pure functions, run on the controller."""

from __future__ import annotations

import json
import shlex

SEVERITIES = ("fail", "warn", "info", "ok")


def findings_text(findings: list[dict], severities: list[str] | None = None) -> str:
    """Findings as lines, worst first: severity, node, what, and the cure where there is one.

    Args:
        findings: findings as preflight, gates and verify give them (id, severity, node, what, cure ...).
        severities: only these; all when not given.

    Returns:
        One line per finding, the empty text when there is none.
    """
    chosen = [finding for finding in findings if severities is None or finding["severity"] in severities]
    chosen.sort(key=lambda finding: (SEVERITIES.index(finding["severity"]), finding.get("node") or "", finding["id"]))
    lines = []
    for finding in chosen:
        place = f"{finding['node']}: " if finding.get("node") else ""
        cure = f" {finding['cure']}" if finding.get("cure") else ""
        lines.append(f"{finding['severity'].upper():4} {place}{finding['what']}{cure}")
    return "\n".join(lines)


def _aligned(rows: list[tuple]) -> list[str]:
    """Rows of texts as lines with columns of equal width."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def plan_text(fleet: dict) -> str:
    """The plan of a fleet as a table, a cluster at a time.

    Args:
        fleet: what the filter fleet_plan returns: {nodes: {host: plan}, findings: [...]}.

    Returns:
        Text with one line per rail, then the findings that are not ok.
    """
    clusters: dict[str, list[dict]] = {}
    for node, plan in fleet["nodes"].items():
        clusters.setdefault(plan["cluster"], []).append({"node": node, **plan})
    blocks = []
    for name, nodes in clusters.items():
        first = nodes[0]
        lines = [
            f"cluster {name}: profile {first['profile']['name']}, toolchain {first['toolchain']['name']}, "
            f"tensor parallel {first['tensor_parallel']}, MTU {first['mtu']}"
        ]
        rows = [("  node", "role", "cage", "rail", "device", "address")]
        for node in nodes:
            for rail in node["rails"] or [{"cage": "-", "netdev": "-", "device": "-", "address": node["address"], "prefix": 32}]:
                rows.append(
                    (f"  {node['node']}", node["role"], rail["cage"], rail["netdev"], rail["device"], f"{rail['address']}/{rail['prefix']}")
                )
        blocks.append("\n".join(lines + _aligned(rows)))
    remarks = findings_text(fleet["findings"], ["fail", "warn", "info"])
    return "\n".join(blocks + ([remarks] if remarks else []))


def ssh_command(variables: dict, host: str) -> str:
    """The ssh command line that reaches a host as its inventory variables say.

    Args:
        variables: the host's variables (ansible_host, ansible_user, ansible_port, ansible_ssh_private_key_file,
            ansible_ssh_common_args).
        host: its inventory name, used where there is no ansible_host.

    Returns:
        A shell-quoted command without the remote part.
    """
    command = ["ssh"]
    if variables.get("ansible_ssh_private_key_file"):
        command += ["-i", str(variables["ansible_ssh_private_key_file"])]
    if variables.get("ansible_port"):
        command += ["-p", str(variables["ansible_port"])]
    command += shlex.split(str(variables.get("ansible_ssh_common_args") or ""))
    user = f"{variables['ansible_user']}@" if variables.get("ansible_user") else ""
    command.append(user + str(variables.get("ansible_host") or host))
    return shlex.join(command)


def connection(plan: dict, variables: dict, host: str, question: str = "What are you?") -> dict:
    """How to reach what a cluster serves.

    Args:
        plan: the head's plan.
        variables: the head's variables.
        host: the head's inventory name.
        question: what the sample request asks.

    Returns:
        {url, model, key_file, curl}: the curl line takes the key from its file on the head through ssh, so that the key is
        never on a command line. When the server listens on the head's loopback only, curl runs there too.
    """
    port = int(variables.get("spark_port") or 8000)
    listen = str(variables.get("spark_listen") or "127.0.0.1")
    outside = listen not in ("127.0.0.1", "::1", "localhost")
    address = str(variables.get("ansible_host") or host) if listen in ("0.0.0.0", "::") else listen
    url = f"http://{address}:{port}/v1"
    model = plan["profile"]["served_name"]
    key_file = "/etc/gb10/credentials/api-key"
    header = f"sudo sed 's/^/Authorization: Bearer /' {key_file}"
    reach = ssh_command(variables, host)
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": question}]})
    request = f"{url}/chat/completions -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    if outside:
        curl = f"curl -sS --fail-with-body --max-time 120 -H @<({reach} {shlex.quote(header)}) {request}"
    else:
        curl = f"{reach} {shlex.quote(f'{header} | curl -sS --fail-with-body --max-time 120 -H @- {request}')}"
    return {"url": url, "model": model, "key_file": f"{key_file} on {host}", "curl": curl}


def summary_text(fleet: dict, hostvars: dict) -> str:
    """What a run of site.yml achieved and how to use it, a cluster at a time.

    Args:
        fleet: what the filter fleet_plan returns.
        hostvars: variables of every host; a head that answered has the smoke test's result in serve_smoke.

    Returns:
        Text.
    """
    lines = []
    for host, plan in fleet["nodes"].items():
        if plan["role"] != "head":
            continue
        variables = hostvars[host]
        smoke = variables.get("serve_smoke") or {}
        card = connection(plan, variables, host)
        lines.append(f"cluster {plan['cluster']} ({', '.join(plan['nodes'])}), tensor parallel {plan['tensor_parallel']}")
        if smoke.get("content"):
            lines += [
                f"  serves   {card['model']} at {card['url']}",
                f"  says     {smoke['content'].strip()}  ({smoke['seconds']:.1f} s, {smoke['usage']['total_tokens']} tokens)",
                f"  key      {card['key_file']}",
                f"  ask      {card['curl']}",
            ]
        else:
            lines.append("  not asked in this run: no completion was seen")
    return "\n".join(lines)
