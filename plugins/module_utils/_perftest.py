# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of ib_write_bw and its sisters, and what a rail's bandwidth tells: text in, data out."""

from __future__ import annotations

import re
import typing as t

# NVIDIA's two-Spark script passes 175 Gb/s for both rails of a cage; a healthy rail gives 92 to 98.
RAIL_PASS_GBPS = 87.5
RAIL_WEDGE_GBPS = 20.0
_ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s*$")


def parse_bandwidth(text: str) -> list[dict[str, t.Any]]:
    """Result rows. The peak is 0.00 whenever the test runs for a time instead of a count, so only the average counts."""
    rows = []
    for line in text.splitlines():
        found = _ROW.match(line)
        if found:
            size, iterations, _peak, average, rate = found.groups()
            rows.append(
                {"bytes": int(size), "iterations": int(iterations), "average_gbps": float(average), "million_messages": float(rate)}
            )
    return rows


def judge_rail(rows: list[dict[str, t.Any]]) -> str | None:
    """What is wrong with a rail, in a sentence with the cure, or None. No row is a failure, whatever the exit code was."""
    if not rows:
        return (
            "The bandwidth test printed no result row, so nothing went over the rail: "
            "check the GID index and that the peer's end of the test is running."
        )
    worst = min(row["average_gbps"] for row in rows)
    if worst >= RAIL_PASS_GBPS:
        return None
    if worst < RAIL_WEDGE_GBPS:
        return (
            f"The rail gives {worst} Gb/s where about 98 are expected, though its link is up: "
            "reboot both nodes with the cable in; if that does not help, take the power from both for a minute."
        )
    return f"The rail gives {worst} Gb/s where about 98 are expected: check the cable, the MTU of both ends and what else uses the rail."
