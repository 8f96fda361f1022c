from __future__ import annotations

import json
import os
import types

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.modules import node_unit

SHOW = (
    "LoadState={load}\nActiveState={active}\nSubState=x\nUnitFileState={enabled}\nNeedDaemonReload=no\nResult=success\n"
    "InactiveExitTimestamp=Mon 2026-11-30 19:24:05.250000 UTC\n"
)
ACTIVE = SHOW.format(load="loaded", active="active", enabled="enabled")
NOT_FOUND = SHOW.format(load="not-found", active="inactive", enabled="")
INACTIVE = SHOW.format(load="loaded", active="inactive", enabled="disabled")


@pytest.fixture
def call(capsys, monkeypatch):
    """Run the module with answers for `show`; returns exit status, result and the systemctl calls but `show`."""

    def run(answers, failing=types.MappingProxyType({}), **arguments):
        calls, shows = [], list(answers)

        def run_command(_module, command, **options):
            assert options["environ_update"]["LC_ALL"] == "C"
            assert command[:5] == ["/usr/bin/timeout", "-k", "5", "60", "/usr/bin/systemctl"]
            command = command[4:]
            if command[1] == "show":
                return 0, shows.pop(0), ""
            calls.append(command[1:])
            return failing.get(command[1], (0, "", ""))

        monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda _module, name: f"/usr/bin/{name}")
        monkeypatch.setattr(basic.AnsibleModule, "run_command", run_command)
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            node_unit.main()
        return ended.value.code, json.loads(capsys.readouterr().out), calls

    return run


def test_a_running_unit_with_old_inputs_is_left_alone(call, tmp_path):
    path = tmp_path / "old.env"
    path.touch()
    os.utime(path, (1_700_000_000, 1_700_000_000))
    status, result, calls = call([ACTIVE], name="x.service", inputs=[str(path), str(tmp_path / "none")])
    assert (status, result["changed"], calls) == (0, False, [])


def test_a_newer_input_restarts_it(call, tmp_path):
    path = tmp_path / "new.env"
    path.touch()
    os.utime(path, (1_900_000_000, 1_900_000_000))
    _status, result, calls = call([ACTIVE], name="x.service", inputs=[str(path)])
    assert result["changed"] is True and result["stale"] == [str(path)]
    assert calls == [["stop", "x.service"], ["start", "--no-block", "x.service"]]


def test_of_a_link_the_link_counts(call, tmp_path):
    link = tmp_path / "current"
    link.symlink_to("/nowhere")
    os.utime(link, (1_900_000_000, 1_900_000_000), follow_symlinks=False)
    assert call([ACTIVE], name="x.service", inputs=[str(link)])[1]["stale"] == [str(link)]


def test_a_fresh_unit_file_is_loaded_enabled_and_started(call):
    status, result, calls = call([NOT_FOUND, INACTIVE], name="x.service")
    assert status == 0 and result["steps"] == ["enable", "start"]
    assert calls == [["daemon-reload"], ["enable", "x.service"], ["start", "--no-block", "x.service"]]


def test_check_mode_on_a_bare_node_predicts_and_does_nothing(call):
    status, result, calls = call([NOT_FOUND], name="x.service", _ansible_check_mode=True)
    assert (status, result["changed"], calls) == (0, True, [])
    assert result["diff"]["after"] == "x.service: active, enabled\n"


def test_a_unit_that_is_nowhere_is_said(call):
    status, result, _calls = call([NOT_FOUND, NOT_FOUND], name="x.service")
    assert status == 1 and "no unit x.service" in result["msg"]


def test_absent_stops_and_disables(call):
    _status, result, calls = call([ACTIVE, INACTIVE], name="x.service", state="absent")
    assert result["changed"] is True
    assert calls == [["disable", "x.service"], ["stop", "x.service"]]
    assert call([NOT_FOUND], name="x.service", state="absent")[1]["changed"] is False


def test_a_unit_that_had_to_be_killed_is_not_left_as_failed(call):
    killed = SHOW.format(load="loaded", active="failed", enabled="disabled")
    assert call([ACTIVE, killed], name="x.service", state="absent")[2][-1] == ["reset-failed", "x.service"]


def test_a_failing_systemctl_is_quoted(call):
    status, result, _calls = call([INACTIVE], failing={"start": (1, "", "Unit is masked.")}, name="x.service")
    assert status == 1 and "Unit is masked." in result["msg"] and "journalctl -u x.service" in result["msg"]


def test_a_systemctl_that_hangs_is_said(call):
    status, result, _calls = call([ACTIVE], failing={"stop": (124, "", "")}, name="x.service", state="absent")
    assert status == 1 and "systemctl stop x.service did not end within 60 s and was stopped. Look at it with" in result["msg"]
