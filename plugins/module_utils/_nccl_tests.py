# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL and nccl-tests print: text in, data out.

Figures have the names and units of nccl-tests: algbw (algorithm bandwidth) and busbw (bus bandwidth) in GB/s, 10^9 bytes, one way.
"""

from __future__ import annotations

import math
import re
import typing as t

WORDS_AFTER_SIZE = 3
GROUP = 4  # time, algbw, busbw, #wrong: once out of place, once in place
PER_ITERATION = 4  # lowest, highest, 99th percentile and variation, which follow each group when they are asked for (2.18)
LONGEST_LINE, MOST_LINES = 300, 20
MOST_DIGITS = 18

_COMMENT = re.compile(r"#\s*(Collective test starting|Avg bus bandwidth|Out of bounds values)\s*:\s*(\S+)")
_VERSIONS = re.compile(r"# nccl-tests version (\S+).*?nccl-library=(\d{1,9})\b")
_VALIDATION = re.compile(r"#.*\bvalidation: (\d+)")
_DEVICE = re.compile(r"#\s+Rank\s+(\d{1,9})\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+(\d{1,9}) \[([^\]]*)\] (.*\S)")
# Before 2.13 the fourth column is the largest deviation, which rounding makes, and not a count.
_DEVIATION = re.compile(r"^#.*\bbusbw\s+error\b")
_TIME = re.compile(r"^\d{4}-\d\d-\d\d$|^\d\d:\d\d:\d\d$")
_TROUBLE = re.compile(r"Test (?:NCCL |CUDA )?failure|Invalid number of GPUs|NCCL WARN|: Test .* failure|CUDA error|out of memory", re.IGNORECASE)

_LOG = {
    "version": re.compile(r"NCCL version (\d+\.\d+\.\d+)"),
    "network": re.compile(r"NCCL INFO Using network (\S+)"),
    "bootstrap": re.compile(r"NCCL INFO Bootstrap\s*: Using (\S+?):"),
    "devices": re.compile(r"NCCL INFO NET/IB : Using (\[0\].*?)(?: \[RO\]|; OOB|$)"),
}
_NODES = re.compile(r"nRanks (\d{1,9}) nNodes (\d{1,9})\b")
_RANKS = re.compile(r"\bnranks (\d{1,9})\b")
_CHANNEL = re.compile(r"Channel \d+/\d+ : .* via (NET/(\w+)/(\d{1,9})\b|P2P|SHM|\S+)")
_DEVICE_NAME = re.compile(r"\[\d+\](\S+?):\d+/")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def _group(words: t.Sequence[str]) -> dict[str, t.Any] | None:
    time_us, algorithm, bus = (_number(word) for word in words[:3])
    if time_us is None or algorithm is None or bus is None or (words[3] != "N/A" and _number(words[3]) is None):
        return None
    wrong = _number(words[3])
    return {"time_us": time_us, "algbw": algorithm, "busbw": bus, "wrong": None if wrong is None else int(wrong)}


def looks_like_row(line: str) -> bool:
    """Whether a line begins as a row of results does: with a size in bytes and a count."""
    words = line.split()
    return len(words) > WORDS_AFTER_SIZE and _is_count(words[0]) and _is_count(words[1])


def parse_row(line: str) -> dict[str, t.Any] | None:
    """One row of results, whatever the version: with or without operation and root, 1e+06, N/A for not compared, figures of each iteration.

    A row begins with size and count, words name type and operation, and groups of four figures end it.
    """
    words = line.split()
    if len(words) < 2 + GROUP or not looks_like_row(line):
        return None
    rest = words[2:]
    while rest and _TIME.match(rest[-1]):
        rest.pop()
    names = []
    while rest and len(names) < WORDS_AFTER_SIZE and _number(rest[0]) is None and rest[0] != "N/A":
        names.append(rest.pop(0))
    if len(rest) % GROUP == 1:
        rest.pop(0)  # the root
    if len(rest) == 2 * (GROUP + PER_ITERATION):
        rest = rest[:GROUP] + rest[GROUP + PER_ITERATION : 2 * GROUP + PER_ITERATION]
    if len(rest) not in (GROUP, 2 * GROUP):
        return None
    groups = [_group(rest[place : place + GROUP]) for place in range(0, len(rest), GROUP)]
    if None in groups:
        return None
    return {
        "bytes": int(words[0]),
        "count": int(words[1]),
        "type": names[0] if names else None,
        "out_of_place": groups[0],
        "in_place": groups[1] if len(groups) > 1 else None,
    }


def parse_log(text: str) -> dict[str, t.Any]:
    """What NCCL_DEBUG=INFO tells of a run.

    Returns:
        {version, network, bootstrap (interface), devices: [RDMA device], ranks, nodes, transports: [NET/IB, NET/Socket, P2P, SHM ...]
        of the channels, net_devices: [number of the network device], warnings: [text]}; null or empty where it does not say.
    """
    found: dict[str, t.Any] = {name: None for name in _LOG}
    found.update(devices=[], ranks=None, nodes=None, transports=[], net_devices=[], warnings=[])
    for line in text.splitlines():
        if "NCCL" not in line and "NET/" not in line:
            continue
        for name, pattern in _LOG.items():
            match = pattern.search(line)
            if match and not found[name]:
                found[name] = _DEVICE_NAME.findall(match.group(1)) if name == "devices" else match.group(1)
        match = _NODES.search(line)
        if match:
            found["ranks"], found["nodes"] = int(match.group(1)), int(match.group(2))
        match = _RANKS.search(line)
        if match and found["ranks"] is None:
            found["ranks"] = int(match.group(1))
        match = _CHANNEL.search(line)
        if match:
            kind = f"NET/{match.group(2)}" if match.group(2) else match.group(1).split("/")[0]
            if kind not in found["transports"]:
                found["transports"].append(kind)
            if match.group(3) and int(match.group(3)) not in found["net_devices"]:
                found["net_devices"].append(int(match.group(3)))
        if "NCCL WARN" in line and len(found["warnings"]) < MOST_LINES:
            found["warnings"].append(line.split("NCCL WARN", 1)[1].strip()[:LONGEST_LINE])
    return found


def parse_nccl_tests(text: str) -> dict[str, t.Any]:
    """The output of one of the nccl-tests.

    Returns:
        {collective, version, nccl, ranks: [{rank, host, device, bus, name}], validated (null when it does not say), rows (as parse_row),
        unread: [line that begins as a row and is none], out_of_bounds (count or null), average (GB/s or null), errors: [line],
        log: as parse_log}. It came to its end when it says out_of_bounds or average.
    """
    found: dict[str, t.Any] = {
        "collective": None, "version": None, "nccl": None, "ranks": [], "validated": None, "rows": [], "unread": [], "out_of_bounds": None,
        "average": None, "errors": [], "log": parse_log(text),
    }
    deviation = False
    for line in text.splitlines():
        comment, versions, validation, device = (
            pattern.search(line) for pattern in (_COMMENT, _VERSIONS, _VALIDATION, _DEVICE)
        )
        if comment and comment.group(1) == "Collective test starting":
            found["collective"] = comment.group(2).rsplit("_perf", 1)[0]
        elif comment:
            name = "average" if comment.group(1) == "Avg bus bandwidth" else "out_of_bounds"
            found[name] = _number(comment.group(2))
        elif versions:
            found["version"] = versions.group(1)
            number = int(versions.group(2))
            found["nccl"] = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        elif validation:
            found["validated"] = validation.group(1) != "0"
        elif device:
            rank, host, index, bus, name = device.groups()
            found["ranks"].append({"rank": int(rank), "host": host, "device": int(index), "bus": bus, "name": name})
        elif _DEVIATION.search(line):
            deviation = True
        elif _TROUBLE.search(line):
            if len(found["errors"]) < MOST_LINES:
                found["errors"].append(line.strip()[:LONGEST_LINE])
        else:
            row = parse_row(line)
            if row:
                found["rows"].append(_without_deviation(row) if deviation else row)
            elif looks_like_row(line) and len(found["unread"]) < MOST_LINES:
                found["unread"].append(" ".join(line.split())[:LONGEST_LINE])
    if found["validated"] is None and found["rows"]:
        found["validated"] = found["out_of_bounds"] is not None if deviation else any(
            row[place] and row[place]["wrong"] is not None for row in found["rows"] for place in ("out_of_place", "in_place")
        )
    return found


def _without_deviation(row: dict[str, t.Any]) -> dict[str, t.Any]:
    """A row whose fourth column is no count: how many values were out of bounds stands at the end of the output only."""
    for place in ("out_of_place", "in_place"):
        if row[place] and row[place]["wrong"] is not None:
            row[place]["wrong"] = 0
    return row


def flat_rows(parsed: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The rows of nccl-tests in the shape that the gate's own ranks report: one for each size, out of place and in place taken together.

    Figures are the means of the two, as in nccl-tests' own average; wrong is their sum, null when nothing was compared.
    """
    flat = []
    for row in parsed["rows"]:
        places = [row[place] for place in ("out_of_place", "in_place") if row[place]]
        counts = [place["wrong"] for place in places if place["wrong"] is not None]
        flat.append({
            "collective": parsed["collective"],
            "bytes": row["bytes"],
            **{name: round(sum(place[name] for place in places) / len(places), 3) for name in ("time_us", "algbw", "busbw")},
            "wrong": sum(counts) if counts and parsed["validated"] is not False else None,
        })
    if flat and parsed["out_of_bounds"] and not any(row["wrong"] for row in flat):
        flat[-1]["wrong"] = int(parsed["out_of_bounds"])
    return flat
