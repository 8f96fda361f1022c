# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read: findings, the plan and the summary as text. Pure functions, run on the controller."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
import typing as t

SEVERITIES = ("fail", "warn", "info", "ok")
FIELDS = ("id", "severity", "node", "cluster", "what", "evidence", "cause", "cure", "source", "silenced", "cured_by")
# What a finding of one node has in common with the same finding of another.
COMMON = ("id", "severity", "cluster", "what", "cause", "cure", "source", "silenced")
TEXT_LIMIT = 2000
EVIDENCE_LINES = 6
SECRETS = re.compile(r"\b([A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY)[A-Z0-9_]*=[\"']?|Bearer )(?!REDACTED)[^\s'\"]+")


def plain(value: t.Any, limit: int = TEXT_LIMIT) -> str:
    """A text that is safe to show anywhere.

    Args:
        value: anything; None is the empty text.
        limit: characters to keep; how many are left out is said.

    Returns:
        The text without control characters, terminal escapes and changes of writing direction (U+FFFD stands for each), and
        without the values of environment variables that are named as secrets. Line breaks stay.
    """
    text = "" if value is None else str(value).replace("\r\n", "\n").replace("\t", "    ")
    # What says how much is left out may stand beyond the limit, so that a second time changes nothing.
    rest = len(text) - limit if len(text) > limit + 40 else 0
    if rest:
        text = text[:limit]
    text = "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
    text = SECRETS.sub(r"\1REDACTED", text)
    return f"{text} ... ({rest} more characters)" if rest else text


def normal(finding: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A finding with all of its fields, each of its type: node, cluster, silenced and cured_by are a text or None, the rest are texts."""
    found: dict[str, t.Any] = {}
    for field in FIELDS:
        value = finding.get(field)
        optional = field in ("node", "cluster", "silenced", "cured_by")
        found[field] = None if optional and value in (None, "", False) else plain(value)
    if found["severity"] not in SEVERITIES:
        found["severity"] = "warn"
    return found


def ordered(findings: t.Iterable[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Findings with all fields, worst first, the silenced ones last."""

    def place(found: dict[str, t.Any]) -> tuple:
        return (
            found["silenced"] is not None, SEVERITIES.index(found["severity"]),
            found["cluster"] or "", found["id"], found["node"] or "", found["what"],
        )

    return sorted((normal(finding) for finding in findings), key=place)


def grouped(findings: t.Iterable[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Findings worst first, those that say the same of several nodes as one.

    Returns:
        Findings with `nodes`, the list of node names, and `evidence` as [(node, text)], one entry where all nodes show the same.
    """
    groups: dict[tuple, dict[str, t.Any]] = {}
    for found in ordered(findings):
        key = tuple(found[field] for field in COMMON)
        group = groups.setdefault(key, {**found, "nodes": [], "evidence": []})
        if found["node"] and found["node"] not in group["nodes"]:
            group["nodes"].append(found["node"])
        if found["evidence"] and (found["node"], found["evidence"]) not in group["evidence"]:
            group["evidence"].append((found["node"], found["evidence"]))
    for group in groups.values():
        if len({text for node, text in group["evidence"]}) == 1 and len(group["evidence"]) == max(len(group["nodes"]), 1):
            group["evidence"] = [(None, group["evidence"][0][1])]
    return list(groups.values())


def counts(findings: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, int]:
    """How many findings there are of each severity; a silenced one counts as silenced only."""
    total = dict.fromkeys((*SEVERITIES, "silenced"), 0)
    for finding in findings:
        found = normal(finding)
        total["silenced" if found["silenced"] is not None else found["severity"]] += 1
    return total


def verdict(findings: t.Iterable[t.Mapping[str, t.Any]]) -> str:
    """The worst severity of what is not silenced; ok where there is nothing."""
    total = counts(findings)
    return next((severity for severity in SEVERITIES if total[severity]), "ok")


def number_of(count: int, word: str) -> str:
    """A number with its noun."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def count_line(findings: t.Iterable[t.Mapping[str, t.Any]], nodes: int, report: str | None = None) -> str:
    """One line: how many findings of each severity on how many nodes, and where the report is.

    Args:
        findings: the findings.
        nodes: how many nodes were looked at.
        report: path of the report, None when there is none.
    """
    total = counts(findings)
    parts = [f"{total[name]} {name}" for name in ("fail", "warn", "info", "silenced") if total[name]]
    line = f"{', '.join(parts) or 'nothing found'} on {number_of(nodes, 'node')}"
    return f"{line}; report: {report}" if report else line


def _wrapped(label: str, text: str, width: int, lines: int | None = None) -> list[str]:
    """A text behind a label, wrapped, all but its first line indented to the same column."""
    indent = " " * 16
    first = f"      {label:<10}"
    parts = [part.rstrip() for part in text.splitlines() if part.strip()]
    left_out = len(parts) - lines if lines is not None and len(parts) > lines else 0
    if left_out:
        parts = parts[:lines] + [f"({number_of(left_out, 'more line')})"]
    wrapped = []
    for part in parts:
        wrapped += textwrap.wrap(
            part, max(width, 40), initial_indent=indent if wrapped else first, subsequent_indent=indent,
            break_on_hyphens=False, break_long_words=True,
        )
    return wrapped


def findings_blocks(findings: t.Iterable[t.Mapping[str, t.Any]], width: int = 100) -> list[tuple[str, str]]:
    """Findings for a terminal, worst first, the silenced ones last.

    Args:
        findings: the findings.
        width: columns of the terminal.

    Returns:
        [(severity or "silenced", text)]. A block has the severity, the nodes and the id, what is the matter, then evidence,
        cause, cure and source. One that is ok has one paragraph.
    """
    blocks = []
    for group in grouped(findings):
        silenced = group["silenced"] is not None
        place = ", ".join(group["nodes"]) or (f"cluster {group['cluster']}" if group["cluster"] else "fleet")
        label = group["severity"].upper()
        head = f"{label:<6}{place}  {group['id']}"
        if silenced:
            head += "  (silenced)"
        lines = textwrap.wrap(head, max(width, 40), subsequent_indent=" " * 6, break_on_hyphens=False)
        lines += textwrap.wrap(
            group["what"], max(width, 40), initial_indent=" " * 6, subsequent_indent=" " * 6, break_on_hyphens=False
        )
        if silenced:
            lines += _wrapped("silenced", group["silenced"], width)
        elif group["severity"] != "ok":
            for node, text in group["evidence"]:
                lines += _wrapped("evidence", f"{node}: {text}" if node and len(group["evidence"]) > 1 else text, width, EVIDENCE_LINES)
            for field in ("cause", "cure", "source"):
                lines += _wrapped(field, group[field], width)
        blocks.append(("silenced" if silenced else group["severity"], "\n".join(lines)))
    return blocks


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
