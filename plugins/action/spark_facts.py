# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name and keeps the facts of the subsets that this run did not gather.

Ansible replaces a whole top-level fact, so that a later run with fewer subsets would take the others away.
"""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_async = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result = super().run(tmp, variables)
        result.update(self._execute_module(task_vars=variables, wrap_async=bool(self._task.async_val)))
        facts = result.get("ansible_facts")
        known = (variables.get("ansible_facts") or {}).get("spark")
        if isinstance(facts, dict) and isinstance(facts.get("spark"), dict) and isinstance(known, dict):
            facts["spark"] = {**known, **facts["spark"]}
        return result
