# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types
from unittest import mock

import pytest
from ansible_collections.gb10.fleet.plugins.action.spark_facts import ActionModule


def run(returned, task_vars):
    task = types.SimpleNamespace(async_val=0, environment=[])
    action = ActionModule.__new__(ActionModule)
    action._task = task
    with mock.patch("ansible.plugins.action.ActionBase.run", return_value={}), mock.patch.object(
        ActionModule, "_execute_module", return_value=returned
    ):
        return action.run(task_vars=task_vars)


def test_subsets_that_were_not_gathered_are_kept():
    known = {"ansible_facts": {"spark": {"gpu": {"state": "ok"}, "rdma": {"state": "no_device"}, "proven": {"a": 1}}}}
    result = run({"changed": False, "ansible_facts": {"spark": {"rdma": {"state": "ok"}, "proven": {}}}}, known)
    assert result["ansible_facts"]["spark"] == {"gpu": {"state": "ok"}, "rdma": {"state": "ok"}, "proven": {}}
    assert known["ansible_facts"]["spark"]["rdma"] == {"state": "no_device"}


@pytest.mark.parametrize("task_vars", [None, {}, {"ansible_facts": {}}, {"ansible_facts": {"spark": None}}])
def test_first_run(task_vars):
    result = run({"changed": False, "ansible_facts": {"spark": {"proven": {}}}}, task_vars)
    assert result["ansible_facts"]["spark"] == {"proven": {}}


def test_failure_passes_through():
    known = {"ansible_facts": {"spark": {"gpu": {}}}}
    assert run({"failed": True, "msg": "no"}, known) == {"failed": True, "msg": "no"}
