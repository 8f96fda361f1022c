# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name, keeps the facts of the subsets that this run did not gather, and bounds the node's clock.

Ansible replaces a whole top-level fact, so that a later run with fewer subsets would take the others away.
"""

from __future__ import annotations

import time
import typing as t

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_async = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result = super().run(tmp, variables)
        before = time.time()
        result.update(self._execute_module(task_vars=variables, wrap_async=bool(self._task.async_val)))
        after = time.time()
        facts = result.get("ansible_facts")
        spark = facts.get("spark") if isinstance(facts, dict) else None
        if not isinstance(spark, dict):
            return result
        clock = (spark.get("platform") or {}).get("clock")
        if isinstance(clock, dict) and isinstance(clock.get("epoch"), float):
            # The node looked at its clock somewhen between: so much is it ahead of this machine, at least and at most.
            clock["window"] = [round(clock["epoch"] - after, 3), round(clock["epoch"] - before, 3)]
        known = (variables.get("ansible_facts") or {}).get("spark")
        if isinstance(known, dict):
            facts["spark"] = {**known, **spark}
        return result
