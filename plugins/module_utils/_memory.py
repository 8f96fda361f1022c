# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memory, swap and the limit of locked memory. Files in, data out."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._files import read_number, read_text

PROBES: dict[str, tuple[str, ...]] = {}
UNLIMITED = -1
_LINE = re.compile(r"^([A-Za-z0-9_()]+):\s+([0-9]{1,18})(?:\s+(kB))?\s*$")
_MEMLOCK = re.compile(r"^Max locked memory\s+([0-9]{1,18}|unlimited)\s+([0-9]{1,18}|unlimited)\b", re.MULTILINE)

Note = t.Callable[[str, str, str], None]


def parse_meminfo(text: str) -> dict[str, int]:
    """Values of /proc/meminfo in bytes, counts of pages as they are."""
    values = {}
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            values[found.group(1)] = int(found.group(2)) * (1024 if found.group(3) else 1)
    return values


def parse_swaps(text: str) -> tuple[list[dict[str, t.Any]], list[str]]:
    """Swap areas of /proc/swaps, and the lines that are none. Spaces in a path are \\040 there."""
    areas, odd = [], []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] == "Filename":
            continue
        if len(words) >= 4 and all(re.match(r"^[0-9]{1,15}$", word) for word in words[2:4]):
            path = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), words[0])
            areas.append({"path": path, "type": words[1], "size_bytes": int(words[2]) * 1024, "used_bytes": int(words[3]) * 1024})
        else:
            odd.append(line)
    return areas, odd


def parse_memlock(text: str) -> dict[str, int | None]:
    """Limits of locked memory of /proc/PID/limits in bytes; -1 is without limit."""
    found = _MEMLOCK.search(text)
    words = found.groups() if found else (None, None)
    return {name: None if word is None else UNLIMITED if word == "unlimited" else int(word) for name, word in zip(("soft", "hard"), words)}


def read_memory(root: str, answers: t.Mapping[str, t.Any], note: Note) -> dict[str, t.Any]:
    """Facts of the subset memory; it asks no tool. The limits are those of this session."""
    text = read_text(root, "proc/meminfo")
    values = parse_meminfo(text or "")
    if text and "MemTotal" not in values:
        note("/proc/meminfo", "not_understood", text.splitlines()[0])
    swap, odd = parse_swaps(read_text(root, "proc/swaps") or "")
    for line in odd:
        note("/proc/swaps", "not_understood", line)
    cached = None
    if "Cached" in values:
        # What tmpfs holds counts as cache and cannot be dropped.
        cached = max(0, values["Cached"] + values.get("Buffers", 0) - values.get("Shmem", 0))
    huge = None
    if "HugePages_Total" in values and "Hugepagesize" in values:
        huge = values["HugePages_Total"] * values["Hugepagesize"]
    return {
        "total_bytes": values.get("MemTotal"),
        "available_bytes": values.get("MemAvailable"),
        "free_bytes": values.get("MemFree"),
        "page_cache_bytes": cached,
        "swap_total_bytes": values.get("SwapTotal"),
        "swap_free_bytes": values.get("SwapFree"),
        "swappiness": read_number(root, "proc/sys/vm/swappiness"),
        "swap": swap,
        "huge_pages_bytes": huge,
        "memlock": parse_memlock(read_text(root, "proc/self/limits") or ""),
    }
