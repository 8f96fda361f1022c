# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _run


@pytest.fixture(name="module")
def module_fixture():
    with patch_module_args({}):
        return AnsibleModule(argument_spec={})


def test_a_program_answers_in_the_c_locale(module, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert _run.run(module, ["sh", "-c", "echo $LC_ALL $LANGUAGE $A; echo no >&2; exit 3"], environment={"A": "1"}) == (3, "C C 1\n", "no\n")
    assert _run.run(module, ["/bin/sh", "-c", "cat"], environment={"LC_ALL": "C.UTF-8"}, data="x", binary_data=True)[:2] == (0, "x")


@pytest.mark.parametrize("script", ["echo begun; exec sleep 30", "trap '' TERM; echo begun; while :; do sleep 0.1; done"])
def test_a_program_that_does_not_end_is_stopped(module, monkeypatch, script):
    monkeypatch.setattr(_run, "GRACE_SECONDS", 0.2)
    status, output, error = _run.run(module, ["sh", "-c", script], limit=1)
    assert (status, output) == (124, "begun\n")
    assert error == f"sh -c {script} did not end within 1 s and was stopped"


def test_a_long_command_is_named_by_its_beginning(module):
    error = _run.run(module, ["sh", "-c", "sleep 30\n", *["word"] * 50], limit=1)[2]
    assert error.startswith("sh -c sleep 30 word word") and " word ... did not end within 1 s" in error and len(error) < 140


def test_a_program_that_is_killed_by_another_is_not_late(module):
    assert _run.run(module, ["sh", "-c", "kill -9 $$"])[0] == -9


def test_without_timeout_the_program_runs_all_the_same(module, monkeypatch):
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda module, name: None if name == "timeout" else f"/bin/{name}")
    assert _run.run(module, ["sh", "-c", "exit 124"], limit=1) == (124, "", "")


def test_a_program_that_is_missing_or_cannot_be_run(module, monkeypatch, tmp_path):
    assert _run.run(module, ["no-such-tool", "-x"]) == (127, "", "no-such-tool is not on this node; install the package that has it")
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda module, name: None)
    (tmp_path / "tool").write_bytes(b"\x7fELF")
    (tmp_path / "tool").chmod(0o755)
    assert _run.run(module, [str(tmp_path / "tool")]) == (126, "", f"{tmp_path}/tool cannot be run: Exec format error")
