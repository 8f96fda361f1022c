# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows and writes the findings of a fleet. It runs on the controller only and reaches no node."""

from __future__ import annotations

import datetime
import os
import re
import tempfile
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader
from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue, document, page, report

FORMATS = ("terminal", "json", "html")
COLORS = {"fail": "red", "warn": "yellow", "info": "cyan", "ok": "green", "silenced": "dark gray"}
# Longer lines are hard to read.
WIDEST = 120
NAMED = 5
TIMES = re.compile(r'("observed_at": "[^"]*"|<time datetime="[^"]*">[^<]*</time>)')


def same_but_for_time(one: str, other: str) -> bool:
    """Whether two documents or pages say the same, whenever they were made."""
    return TIMES.sub("", one, count=1) == TIMES.sub("", other, count=1)


def write(path: str, text: str) -> bool:
    """Writes a file at once and readable for all, unless it says the same already; whether it was written."""
    try:
        with open(path, encoding="utf-8") as file:
            if same_but_for_time(file.read(), text):
                return False
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".report-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def sentence(counting: list[dict[str, t.Any]], where: str | None) -> str:
    """Why the run stops and where to read on, in one sentence."""
    places = [
        f"{found['id']} on {found['node'] or found['cluster'] or 'the fleet'}" for found in counting[:NAMED]
    ]
    if len(counting) > NAMED:
        places.append(f"{len(counting) - NAMED} more")
    verb = "stops" if len(counting) == 1 else "stop"
    place = f", each with its cure {where}" if where else ""
    return f"{report.number_of(len(counting), 'finding')} {verb} this run{place}: {', '.join(places)}."


class ActionModule(ActionBase):
    """See the module of the same name."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result = super().run(tmp, variables)
        _validation, arguments = self.validate_argument_spec(
            argument_spec={
                "findings": {"type": "list", "elements": "dict", "required": True},
                "fleet": {"type": "dict", "required": True},
                "folder": {"type": "str"},
                "heals": {"type": "bool", "default": False},
                "formats": {"type": "list", "elements": "str", "choices": list(FORMATS), "default": list(FORMATS)},
            }
        )
        findings = report.ordered(arguments["findings"])
        facts = self._facts(variables)
        clusters = self._clusters(variables, facts, findings)
        folder = os.path.abspath(os.path.expanduser(arguments["folder"])) if arguments["folder"] else None
        observed_at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        documents, page_path, written, problem = [], None, [], None
        if folder:
            texts: dict[str, str] = {}
            if "json" in arguments["formats"]:
                texts = self._documents(folder, clusters, arguments["fleet"], facts, findings, observed_at)
                documents = list(texts)
            if "html" in arguments["formats"]:
                page_path = os.path.join(folder, "report.html")
                texts[page_path] = page.page_text(page.page_view(clusters, arguments["fleet"], facts, findings, observed_at))
            try:
                written = [path for path, text in texts.items() if write(path, text)]
            except OSError as error:
                problem = f"Cannot write the report to {folder} ({error.strerror}): set folder to one that the user of this run may write."
        where = page_path or (os.path.join(folder, "findings") if folder and documents else None)
        line = report.count_line(findings, sum(len(cluster["nodes"]) for cluster in clusters), None if problem else where)
        shown = "terminal" in arguments["formats"]
        if shown:
            self._show(findings, line)
        counting = catalogue.counting(findings, arguments["heals"])
        result.update(
            changed=False,
            verdict=report.verdict(findings),
            counts=report.counts(findings),
            counting=[{"id": found["id"], "node": found["node"], "cluster": found["cluster"]} for found in counting],
            documents=[] if problem else documents,
            page=None if problem else page_path,
            written=written,
            msg=line,
        )
        if problem:
            result.update(failed=True, msg=problem)
        elif counting:
            result.update(failed=True, msg=sentence(counting, "above" if shown else f"in {where}" if where else None))
        return result

    def _facts(self, variables: dict[str, t.Any]) -> dict[str, dict[str, t.Any]]:
        """ansible_facts.spark of every host of the group spark that was looked at."""
        facts = {}
        hostvars = variables.get("hostvars") or {}
        for host in (variables.get("groups") or {}).get("spark") or []:
            known = ((hostvars.get(host) or {}).get("ansible_facts") or {}).get("spark")
            if known:
                facts[str(host)] = known
        return facts

    def _clusters(
        self, variables: dict[str, t.Any], facts: dict[str, dict[str, t.Any]], findings: list[dict[str, t.Any]]
    ) -> list[dict[str, t.Any]]:
        """The clusters of the inventory that were looked at or of which something is said; --limit leaves out the others."""
        lookup = lookup_loader.get("gb10.fleet.clusters", loader=self._loader, templar=self._templar)
        try:
            clusters = lookup.run([], variables=variables)
        except AnsibleError as error:
            raise AnsibleActionFail(str(error)) from None
        named = {found["node"] for found in findings}
        return [cluster for cluster in clusters if any(node in facts or node in named for node in cluster["nodes"])]

    def _documents(
        self, folder: str, clusters: list[dict], fleet: dict[str, t.Any], facts: dict[str, dict], findings: list[dict], observed_at: str
    ) -> dict[str, str]:
        """Path and text of each node's document."""
        texts = {}
        for cluster in clusters:
            for node in cluster["nodes"]:
                own = [
                    found for found in findings
                    if found["node"] == node or (found["node"] is None and found["cluster"] in (None, cluster["name"]))
                ]
                role = ((fleet.get("nodes") or {}).get(node) or {}).get("role")
                content = document.node_document(node, cluster["name"], role, facts.get(node) or {}, own, observed_at)
                texts[os.path.join(folder, "findings", document.file_name(node))] = document.text_of(content)
        return texts

    def _show(self, findings: list[dict[str, t.Any]], line: str) -> None:
        width = min(self._display.columns or 80, WIDEST)
        for severity, text in report.findings_blocks(findings, width):
            self._display.display(text, color=COLORS[severity])
        self._display.display(line, color=COLORS[report.verdict(findings)])
