# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import grp
import json
import os
import pwd

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _node_files
from ansible_collections.gb10.fleet.plugins.module_utils._lock import locked
from ansible_collections.gb10.fleet.plugins.modules import node_files


@pytest.fixture(name="run")
def run_fixture(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_node_files, "BACKUP_FOLDER", str(tmp_path / "backup"))
    monkeypatch.setattr(_node_files, "LOCK_FOLDER", str(tmp_path))
    monkeypatch.setattr(_node_files, "LOCK_SECONDS", 0)

    def run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit):
            node_files.main()
        return json.loads(capsys.readouterr().out)

    return run


def file(path, content):
    owner, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    return {"path": str(path), "content": content, "owner": owner, "group": group}


def test_present_and_absent(run, tmp_path):
    path = tmp_path / "a.env"
    path.write_text("before\n")
    check = run(name="ray", files=[file(path, "A=1\n")], _ansible_check_mode=True, _ansible_diff=True)
    assert path.read_text() == "before\n"
    first = run(name="ray", files=[file(path, "A=1\n")], _ansible_diff=True)
    assert check == first
    assert first["changed"] is True
    assert first["changed_paths"] == first["backups"] == [str(path)]
    assert (first["diff"][0]["before"], first["diff"][0]["after"]) == ("before\n", "A=1\n")
    assert run(name="ray", files=[file(path, "A=1\n")])["changed"] is False
    gone = run(name="ray", state="absent")
    assert gone["changed_paths"] == [str(path)]
    assert path.read_text() == "before\n"


def test_one_run_at_a_time(run, tmp_path):
    path = tmp_path / "a.env"
    with locked(str(tmp_path), 0):
        result = run(name="ray", files=[file(path, "A=1\n")])
    assert result["msg"].startswith(f"node_files (ray): Another run has held the lock on {tmp_path}") and not path.exists()
    assert run(name="ray", files=[file(path, "A=1\n")])["changed"] is True


def test_an_error_is_one_sentence(run, tmp_path):
    result = run(name="ray", files=[file("relative", "")])
    assert result["failed"] is True
    assert result["msg"] == (
        "node_files (ray): files[0].path must be an absolute path without '..' or a trailing slash; got: relative."
    )


@pytest.mark.parametrize(
    "error, message",
    [
        (PermissionError(13, "Permission denied", "/etc/x"), "may not touch /etc/x: Permission denied; the task needs become"),
        (OSError(28, "No space left on device", "/etc/x"), "could not handle /etc/x: No space left on device; mend this"),
    ],
)
def test_errors_of_the_system_name_the_path_and_the_cure(run, tmp_path, monkeypatch, error, message):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(_node_files, "write_file", fail)
    result = run(name="ray", files=[file(tmp_path / "x", "")])
    assert message in result["msg"]
