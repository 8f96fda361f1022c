# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives each node its rank and the gate's key, sees that the ranks can meet at all, and judges what they say.

The nodes run the task at the same time, each in a process of its own; what only the controller knows is asked here.
"""

from __future__ import annotations

import os
import secrets
import typing as t

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue, signatures


def common_key(folder: str, task: str) -> str:
    """A key that all processes of this run of a task have, and nobody else: who comes first writes it."""
    path = os.path.join(folder, f"nccl-gate-{task}")
    made = f"{path}-{secrets.token_hex(8)}"
    with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(secrets.token_hex(32))
    try:
        os.link(made, path)
    except FileExistsError:
        pass
    os.unlink(made)
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def verdict(node: str, nodes: t.Sequence[str], result: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> tuple[list[dict[str, t.Any]], bool]:
    """What a node's part means.

    Args:
        node: its inventory name.
        nodes: all names in the order of ranks.
        result: what the module returned.
        options: shape, expected, minimum, rdma_gbps, version, as of judge_nccl.

    Returns:
        Findings, and whether it passed. The first node's are of the whole run, where no rank failed; each node tells its own failure.
    """
    report, reports = result["report"], result["reports"]
    failed = [other for other in reports if other.get("error") and other["rank"] != report["rank"]]
    if report["error"]:
        identifier, what, evidence = signatures.judge_nccl_failure(report["stage"], report["error"], result["trouble"])
        # What it says of itself is a cause, unless another rank knows a better one.
        if identifier not in ("nccl.failed", "nccl.peer", "nccl.late") or not failed:
            return [catalogue.finding(identifier, None, node, what, evidence=evidence)], False
    if report["rank"] == 0 and failed:
        names = ", ".join(nodes[other["rank"]] for other in failed)
        evidence = "; ".join(f"{nodes[other['rank']]}: {' '.join(str(other['error']).split())}" for other in failed)
        return [catalogue.finding("nccl.peer", None, node, f"The rank on {names} failed.", evidence=evidence[: signatures.LONGEST_LINE])], False
    if report["rank"] != 0:
        return [], True
    told = signatures.judge_nccl({**result, "reports": reports}, nodes, **options)
    found = [catalogue.finding(identifier, None, None, what, evidence=evidence) for identifier, what, evidence in told]
    return found, any(one["id"] in signatures.GOOD for one in found) and not any(one["severity"] == "fail" for one in found)


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_async = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result = super().run(tmp, variables)
        arguments = dict(self._task.args)
        node, nodes = variables["inventory_hostname"], list(arguments.get("nodes") or [])
        wrong = self.cannot_meet(node, nodes, variables)
        if wrong:
            return {**result, "failed": True, "msg": f"nccl_gate: {wrong}"}
        arguments["rank"] = nodes.index(node)
        arguments["key"] = common_key(constants.DEFAULT_LOCAL_TMP, self._task._uuid)
        result.update(self._execute_module(module_args=arguments, task_vars=variables))
        if not result.get("failed"):
            options = {name: None if arguments.get(name) is None else float(arguments[name]) for name in ("expected", "minimum", "rdma_gbps")}
            options["shape"] = "ring" if arguments.get("topology") == "ring" else "pair"
            options["version"] = arguments.get("nccl_version") or None
            result["findings"], result["passed"] = verdict(node, nodes, result, options)
            for name in ("trouble", "report", "ranks", "unread"):
                result.pop(name, None)
            if result["rows"]:
                result["msg"] = f"{signatures.figures_text(result['rows'])} of bus bandwidth"
            # Of this run alone, and of no use to who reads the result.
            (result.get("invocation") or {}).get("module_args", {}).pop("key", None)
        return result

    def cannot_meet(self, node: str, nodes: t.Sequence[str], variables: t.Mapping[str, t.Any]) -> str | None:
        """Why the ranks would wait in vain, in a sentence, or None."""
        if node not in nodes:
            return f"{node} is not among nodes ({', '.join(nodes)}); run the task on the nodes of one cluster only."
        absent = [other for other in nodes if other not in (variables.get("ansible_play_hosts") or nodes)]
        if absent:
            return f"{', '.join(absent)} of this cluster failed above or is left out by --limit, and the ranks wait for each other."
        forks = variables.get("ansible_forks")
        if forks and int(forks) < len(nodes):
            return f"forks is {forks}, and {len(nodes)} nodes must run at the same time; run with --forks {len(nodes)} or more."
        return None
