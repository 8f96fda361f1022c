#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_report
short_description: Shows and writes what was found on a fleet
version_added: 0.1.0
description:
  - Makes three outputs of the same findings. Text on the terminal, worst first. A JSON document for each node. One HTML page that
    needs neither network nor script, with a drawing of each cluster, the findings, a matrix of versions and the plan.
  - Fails with one sentence when a finding of severity C(fail) is neither silenced nor, with O(heals=true), one that C(site.yml) cures.
  - It runs on the controller only, connects to no node and changes nothing that is managed, so that RV(ignore:changed) is V(false).
  - The facts are those that M(gb10.fleet.spark_facts) gathered in this run, redacted as they are. Values of variables that are
    named as tokens, secrets, passwords or keys of an API are left out besides.
author:
  - gb10.fleet developers (@gb10-fleet)
attributes:
  check_mode:
    description: Does the same in check mode.
    support: full
  diff_mode:
    description: Will return details on what has changed when run in diff mode.
    support: N/A
options:
  findings:
    description:
      - Findings, each a mapping with C(id), C(severity) (C(fail), C(warn), C(info) or C(ok)), C(node), C(cluster), C(what),
        C(evidence), C(cause), C(cure), C(source), C(silenced) and C(cured_by).
    type: list
    elements: dict
    required: true
  fleet:
    description: The plan, as the filter P(gb10.fleet.fleet_plan#filter) gives it.
    type: dict
    required: true
  folder:
    description:
      - Folder on the controller for C(report.html) and C(findings/NODE.json). It is made when it is missing.
      - A relative path starts where the run was started. Without it no file is written.
      - A file is written at once, with mode 0644, and only when it differs in more than its time.
    type: str
  heals:
    description: Whether the run goes on to set right what C(site.yml) cures, so that such findings do not fail it.
    type: bool
    default: false
  formats:
    description: Which outputs to make. V(json) and V(html) need O(folder).
    type: list
    elements: str
    choices: [terminal, json, html]
    default: [terminal, json, html]
notes:
  - Use it with C(run_once), since one call reports on the whole fleet.
  - Needs jinja2 on the controller, which comes with ansible-core.
  - A document has at most 256 KiB. What had to be left out is listed in its C(cut). C(docs/schema/node-document.json) describes it.
seealso:
  - module: gb10.fleet.spark_facts
  - plugin: gb10.fleet.fleet_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Report what was found, and stop when something counts
  gb10.fleet.fleet_report:
    findings: "{{ spark_findings }}"
    fleet: "{{ spark_fleet }}"
    folder: reports/today
  run_once: true

- name: Only the documents, for another program
  gb10.fleet.fleet_report:
    findings: "{{ spark_findings }}"
    fleet: "{{ spark_fleet }}"
    folder: /srv/reports
    formats: [json]
  run_once: true
"""

RETURN = r"""
verdict:
  description: The worst severity of the findings that are not silenced.
  returned: always
  type: str
  sample: warn
counts:
  description: How many findings there are of each severity; a silenced one counts as silenced only.
  returned: always
  type: dict
  sample: {fail: 0, warn: 1, info: 3, ok: 1, silenced: 1}
counting:
  description: The findings that make the run fail.
  returned: always
  type: list
  elements: dict
  sample: [{id: mtu.rail_differs, node: spark-b, cluster: pair}]
documents:
  description: Paths of the JSON documents.
  returned: always
  type: list
  elements: str
  sample: [/srv/reports/findings/spark-a.json, /srv/reports/findings/spark-b.json]
page:
  description: Path of the HTML page, V(null) where none was asked for.
  returned: always
  type: str
  sample: /srv/reports/report.html
written:
  description: Paths of the files that were not the same already.
  returned: always
  type: list
  elements: str
  sample: [/srv/reports/report.html]
msg:
  description: Counts and the place of the report, or why the run stops.
  returned: always
  type: str
  sample: "1 warn, 3 info, 1 silenced on 2 nodes; report: /srv/reports/report.html"
"""
