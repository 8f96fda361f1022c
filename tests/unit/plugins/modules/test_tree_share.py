# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import socket

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.modules import tree_share


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run the module with a systemd of our own; returns exit status, result and the commands but is-active."""

    def run(active="inactive", active_status=3, failing=(), missing=(), listening=True, **arguments):
        calls = []

        def run_command(_module, command, **options):
            assert options["environ_update"]["LC_ALL"] == "C"
            assert command[:4] == ["timeout", "-k", "5", "120"]
            command = command[4:]
            if command[1] == "is-active":
                return (0 if active == "active" else active_status), f"{active}\n", ""
            calls.append(command)
            return (1, "", "Unit is masked.") if any(word in failing for word in (command[0], command[1])) else (0, "", "")

        monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda _module, name: None if name in missing else name)
        monkeypatch.setattr(basic.AnsibleModule, "run_command", run_command)
        monkeypatch.setattr(tree_share, "CONFIGURATION", str(tmp_path / "run" / "rsyncd.conf"))
        monkeypatch.setattr(tree_share, "answers", lambda *_arguments: listening)
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            tree_share.main()
        return ended.value.code, json.loads(capsys.readouterr().out), calls

    return run


@pytest.fixture
def share(tmp_path):
    return {"path": str(tmp_path), "address": "192.168.100.10", "peers": ["192.168.100.11"]}


def test_a_share_starts(call, share, tmp_path):
    status, result, calls = call(**share)
    assert status == 0 and result["changed"] is True and result["url"] == "rsync://192.168.100.10:8730/tree/"
    assert [command[0] for command in calls] == ["systemd-run"]
    assert "hosts allow = 192.168.100.11\n" in (tmp_path / "run" / "rsyncd.conf").read_text(encoding="utf-8")


def test_a_share_that_runs_is_replaced(call, share):
    _status, _result, calls = call(active="active", **share)
    assert [command[:2] for command in calls] == [["systemctl", "stop"], ["systemd-run", "--unit=gb10-share.service"]]


def test_check_mode_does_nothing(call, share, tmp_path):
    status, result, calls = call(_ansible_check_mode=True, **share)
    assert (status, result["changed"], calls, list(tmp_path.iterdir())) == (0, True, [], [])
    assert result["url"] == "rsync://192.168.100.10:8730/tree/"
    _status, result, calls = call(active="active", state="absent", _ansible_check_mode=True)
    assert (result["changed"], calls) == (True, [])


def test_absent_ends_it_once(call):
    _status, result, calls = call(active="active", state="absent")
    assert result["changed"] is True and calls == [["systemctl", "stop", "gb10-share.service"]]
    _status, result, calls = call(state="absent")
    assert (result["changed"], calls, "url" in result) == (False, [], False)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"missing": ("rsync",)}, "run the role host"),
        ({"missing": ("systemctl",)}, "Whether gb10-share.service runs cannot be told: systemctl is not on this node"),
        ({"missing": ("systemd-run",)}, "did not start: systemd-run is not on this node"),
        ({"active_status": 124}, "systemctl is-active gb10-share.service did not end within 120 s and was stopped."),
        ({"failing": ("systemd-run",)}, "did not start: Unit is masked."),
        ({"failing": ("stop",), "active": "active"}, "cannot be stopped: Unit is masked."),
        ({"listening": False}, "Nothing listens on 192.168.100.10 port 8730"),
        ({"path": "/none"}, "/none is no folder"),
    ],
)
def test_what_fails_is_said_with_the_cure(call, share, what, said):
    status, result, _calls = call(**{**share, **what})
    assert status == 1 and said in result["msg"]


def test_a_configuration_that_cannot_be_written_is_said(call, share, tmp_path):
    (tmp_path / "run").touch()
    status, result, calls = call(**share)
    assert status == 1 and "rsyncd.conf cannot be written" in result["msg"] and calls == []


def test_a_listener_is_found_and_a_missing_one_given_up():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert tree_share.answers("127.0.0.1", port, 0.1) is False
        server.listen()
        assert tree_share.answers("127.0.0.1", port, 5.0) is True
