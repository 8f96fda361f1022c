# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _marked

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
# A child of a child that has gone into a session of its own, as a daemon does.
DAEMON = "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True); print('on', flush=True)"


def start(code, mark):
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, _marked.VARIABLE: mark}, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_does_not_listen_is_killed_and_others_are_left(monkeypatch):
    monkeypatch.setattr(_marked, "SECONDS_TO_END", 0.3)
    ours, others = start(STUBBORN, "0123"), start(STUBBORN, "01234")
    assert _marked.marked("0123") == [ours.pid]
    assert _marked.end_marked("0123") == [ours.pid]
    assert ours.wait(5) == -signal.SIGKILL and is_running(others.pid)
    others.kill()
    others.wait(5)


def test_one_that_went_away_from_who_started_it():
    parent = start(DAEMON, "4567")
    parent.wait(5)
    (daemon,) = _marked.marked("4567")
    assert _marked.end_marked("4567") == [daemon]
    deadline = time.monotonic() + 5
    while is_running(daemon) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(daemon)


def test_nothing_to_end():
    assert _marked.end_marked("89ab") == [] and _marked.loaded_nccl("89ab") == []


@pytest.fixture(name="proc")
def proc_fixture(tmp_path):
    for number, variables in ((10, b"A=1\0GB10_NCCL_GATE=aa\0"), (9, b"GB10_NCCL_GATE=aa\0"), (11, b"GB10_NCCL_GATE=aab\0")):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "environ").write_bytes(variables)
    (tmp_path / "self").mkdir()
    (tmp_path / "9" / "maps").write_text(
        "7f 00 r-xp /opt/r/lib/libnccl.so.2\n7f 00 r--p /opt/r/lib/libnccl.so.2\n7f 00 r--p /usr/lib/libnccl-net.so\n7f 00 r--p /usr/lib/libc.so.6\n"
    )
    return str(tmp_path)


def test_libraries_of_marked_processes(proc):
    assert _marked.marked("aa", proc) == [9, 10]
    assert _marked.loaded_nccl("aa", proc) == ["/opt/r/lib/libnccl.so.2"]


def test_a_process_that_may_not_be_ended_does_not_stop_the_rest(proc, monkeypatch):
    monkeypatch.setattr(_marked, "SECONDS_TO_END", 0)
    asked = []

    def kill(process, number):
        asked.append((process, number))
        raise PermissionError

    assert _marked.end_marked("aa", proc, kill) == [9, 10]
    assert asked == [(9, signal.SIGTERM), (10, signal.SIGTERM), (9, signal.SIGKILL), (10, signal.SIGKILL)]
