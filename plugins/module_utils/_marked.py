# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that carry a mark in their environment: all that was started with it, however far they went from who started them."""

from __future__ import annotations

import os
import re
import signal
import time
import typing as t

VARIABLE = "GB10_NCCL_GATE"
_LIBRARY = re.compile(r"(/\S*/libnccl\.so[^\s/]*)")
SECONDS_TO_END = 2.0
SECONDS_BETWEEN = 0.1


def marked(mark: str, proc: str = "/proc") -> list[int]:
    """Process ids of those with the mark, which this process has not."""
    wanted = f"{VARIABLE}={mark}".encode()
    found = []
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                with open(f"{proc}/{name}/environ", "rb") as stream:
                    if wanted in stream.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue
    return sorted(found)


def loaded_nccl(mark: str, proc: str = "/proc") -> list[str]:
    """Paths of the NCCL libraries that processes with the mark have loaded."""
    found = []
    for process in marked(mark, proc):
        try:
            with open(f"{proc}/{process}/maps", encoding="utf-8", errors="replace") as stream:
                found += [match.group(1) for match in map(_LIBRARY.search, stream) if match]
        except OSError:
            continue
    return sorted(set(found))


def end_marked(mark: str, proc: str = "/proc", kill: t.Callable[[int, int], None] = os.kill) -> list[int]:
    """End every process with the mark, first asked to, then killed. Returns those that were there."""
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = marked(mark, proc)
        if not left:
            return ended
        ended += [process for process in left if process not in ended]
        for process in left:
            try:
                kill(process, number)
            except OSError:
                continue
        deadline = time.monotonic() + SECONDS_TO_END
        while marked(mark, proc) and time.monotonic() < deadline:
            time.sleep(SECONDS_BETWEEN)
    return ended
