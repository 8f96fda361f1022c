from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._node_unit import newer_inputs, parse_show, steps

# systemctl show --timestamp=us+utc of systemd 252 on Debian 12.
RUNNING = """\
Result=success
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
NeedDaemonReload=no
InactiveExitTimestamp=Mon 2026-11-30 19:24:05.250000 UTC
"""
MISSING = "Result=success\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\nNeedDaemonReload=no\nInactiveExitTimestamp=\n"


def state(**changes):
    return {**parse_show(RUNNING), **changes}


def test_a_running_unit():
    assert parse_show(RUNNING) == {
        "found": True, "active": "active", "sub": "running", "enabled": True, "reload": False, "started": 1796066645.25, "result": "success",
    }


def test_a_missing_unit_never_started():
    missing = parse_show(MISSING)
    assert (missing["found"], missing["active"], missing["enabled"], missing["started"]) == (False, "inactive", False, None)


def test_a_time_without_a_fraction():
    assert parse_show(RUNNING.replace(".250000", ""))["started"] == 1796066645.0


def test_inputs_written_later_are_named():
    assert newer_inputs(100.0, {"/b": 100.5, "/a": 101.0, "/old": 99.0}) == ["/a", "/b"]
    assert newer_inputs(None, {"/a": 101.0}) == []


@pytest.mark.parametrize(
    ("unit", "wanted", "stale", "restart", "todo"),
    [
        (state(), "started", [], False, []),
        (state(), "started", ["/a"], False, ["stop", "start"]),
        (state(), "started", [], True, ["stop", "start"]),
        (state(reload=True), "started", [], False, ["reload", "stop", "start"]),
        (state(enabled=False), "started", [], False, ["enable"]),
        (state(active="activating", sub="auto-restart"), "started", [], False, []),
        (state(active="failed"), "started", [], False, ["start"]),
        (parse_show(MISSING), "started", [], True, ["enable", "start"]),
        (state(), "absent", [], False, ["disable", "stop"]),
        (state(active="failed"), "absent", [], False, ["disable", "stop"]),
        (parse_show(MISSING), "absent", [], False, []),
    ],
)
def test_steps(unit, wanted, stale, restart, todo):
    assert steps(unit, wanted, stale, restart) == todo
