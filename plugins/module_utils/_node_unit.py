# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `systemctl show` says of a unit, and what has to be done with it. Pure functions."""

from __future__ import annotations

import datetime
import typing as t

PROPERTIES = ("LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "InactiveExitTimestamp", "Result")
RUNNING = ("active", "activating", "reloading")
TIMESTAMP = "%a %Y-%m-%d %H:%M:%S.%f UTC"


def parse_show(text: str) -> dict[str, t.Any]:
    """Properties of a unit as `systemctl show --timestamp=us+utc` prints them.

    Args:
        text: lines of NAME=VALUE.

    Returns:
        {found, active, sub, enabled, reload, started (seconds since the epoch or None), result}. found is false for a unit
        that systemd cannot load; active is systemd's word (active, activating, inactive, failed ...).

    Raises:
        ValueError: a time stamp in another form.
    """
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    stamp = values.get("InactiveExitTimestamp", "")
    started = None
    if stamp and stamp != "n/a":
        if "." not in stamp:
            stamp = stamp.replace(" UTC", ".0 UTC")
        started = datetime.datetime.strptime(stamp, TIMESTAMP).replace(tzinfo=datetime.timezone.utc).timestamp()
    return {
        "found": values.get("LoadState") == "loaded",
        "active": values.get("ActiveState", "inactive"),
        "sub": values.get("SubState", ""),
        "enabled": values.get("UnitFileState") == "enabled",
        "reload": values.get("NeedDaemonReload") == "yes",
        "started": started,
        "result": values.get("Result", ""),
    }


def newer_inputs(started: float | None, changed: t.Mapping[str, float]) -> list[str]:
    """Inputs that were written after a unit left its inactive state, so that it runs with older ones.

    Args:
        started: when it did, seconds since the epoch; None when it never did.
        changed: time of the last change by path, same unit.

    Returns:
        Paths in alphabetical order.
    """
    return sorted(path for path, moment in changed.items() if started is not None and moment > started)


def steps(state: t.Mapping[str, t.Any], wanted: str, stale: t.Sequence[str], restart: bool) -> list[str]:
    """What brings a unit to the wanted state, in order.

    Args:
        state: what parse_show returned.
        wanted: started or absent.
        stale: inputs that are newer than the unit's start.
        restart: whether the caller changed something that the unit uses.

    Returns:
        Some of reload, enable, stop, start; or disable, stop. Empty when nothing is to be done. A restart is a stop that is waited
        for and a start: what is asked next is then never answered by the old process.
    """
    running = state["active"] in RUNNING
    if wanted == "absent":
        return (["disable"] if state["enabled"] else []) + (["stop"] if running or state["active"] == "failed" else [])
    todo = ["reload"] if state["reload"] else []
    if not state["enabled"]:
        todo.append("enable")
    if not running:
        todo.append("start")
    elif stale or restart or state["reload"]:
        todo += ["stop", "start"]
    return todo
