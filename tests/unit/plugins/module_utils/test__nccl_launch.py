# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _nccl_agent, _nccl_launch

KEY = "k" * 64
# What mpirun of Open MPI 4.1.4 gives its agent when it was called by its whole path.
WORDS = [
    "PATH=/usr/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/usr/lib:$LD_LIBRARY_PATH ; export LD_LIBRARY_PATH ; ", "/usr/bin/orted", "-mca", "ess", '"env"',
    "-mca", "orte_hnp_uri", '"2049179648.0;tcp://10.99.7.1:41567"', "-mca", "plm", '"rsh"',
]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Side:
    """A worker in a thread, and what became of it."""

    def __init__(self, port, rank=1, key=KEY, run=None, seconds=5.0):
        self.commands, self.error = [], None
        self.run = run or (lambda command, _seconds: (7, "out\n", "err\n"))
        self.thread = threading.Thread(target=self._work, args=(port, rank, key, seconds), daemon=True)
        self.thread.start()

    def _work(self, port, rank, key, seconds):
        def run(command, limit):
            self.commands.append(command)
            return self.run(command, limit)

        def report(failed):
            return {"rank": rank, "failed": failed}

        try:
            _nccl_launch.work("127.0.0.1", port, rank, key, seconds, time.monotonic() + 20, run, report)
        except _nccl_launch.LaunchError as error:
            self.error = error

    def join(self):
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture(name="head")
def head_fixture(tmp_path):
    head = _nccl_launch.Head("127.0.0.1", free_port(), 2, KEY, str(tmp_path), _nccl_agent.SOCKET)
    yield head
    head.close()


def meet(head, seconds=5.0):
    head.meet(seconds, time.monotonic() + 20)


def agent(tmp_path, *words):
    """The agent as mpirun runs it: a program of its own."""
    with open(_nccl_agent.__file__, encoding="utf-8") as stream:
        (tmp_path / "agent.py").write_text(stream.read(), encoding="utf-8")
    done = subprocess.run([sys.executable, str(tmp_path / "agent.py"), *words], capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words, expected",
    [
        (WORDS, ["/usr/bin/orted", "-mca", "ess", "env", "-mca", "orte_hnp_uri", "2049179648.0;tcp://10.99.7.1:41567", "-mca", "plm", "rsh"]),
        (["prted", "--x", '"a b"'], ["prted", "--x", "a b"]), (["rm", "-rf", "/"], None), (["orted-not", "x"], None), (['orted "open'], None), ([], None),
    ],
)
def test_only_the_daemon_of_open_mpi_is_started(words, expected):
    assert _nccl_launch.daemon_command(words) == expected


def test_a_command_goes_to_the_other_node_and_its_answer_comes_back(head, tmp_path):
    worker = Side(head.port)
    meet(head)
    assert head.hosts() == ["127.0.0.1", "127.0.0.1"]
    assert agent(tmp_path, "127.0.0.1", *WORDS) == (7, "out\n", "err\n")
    assert worker.commands == [_nccl_launch.daemon_command(WORDS)]
    assert head.reports(True) == [{"rank": 1, "failed": True}]
    head.close()
    worker.join()
    assert worker.error is None


def test_another_command_is_refused_where_it_would_run(head, tmp_path):
    worker = Side(head.port)
    meet(head)
    status, output, error = agent(tmp_path, "127.0.0.1", "rm", "-rf", "/")
    assert (status, output, error) == (126, "", "only Open MPI's daemon is run here\n") and worker.commands == []


def test_a_host_that_is_none_of_the_gate(head, tmp_path):
    Side(head.port)
    meet(head)
    assert agent(tmp_path, "10.0.0.9", *WORDS) == (1, "", "10.0.0.9 is no node of this gate\n")


def test_the_agent_without_a_command(tmp_path):
    assert agent(tmp_path, "10.0.0.9")[0] == 2


def test_who_has_not_the_key_is_not_let_in(head):
    stranger = Side(head.port, key="x" * 64)
    with pytest.raises(_nccl_launch.LaunchError, match=r"rank 1 did not come within 1 s") as error:
        meet(head, 1.0)
    assert error.value.stage == "meet"
    stranger.join()
    assert "went away" in str(stranger.error)


@pytest.mark.parametrize("said", [b"", b"[]\n", b"null\n", b"\xff\xfe\n", b'{"rank": 7, "key": "' + KEY.encode() + b'"}\n', b'{"rank": true, "key": "k"}\n'])
def test_a_caller_that_says_nonsense_does_not_keep_the_others_out(head, said):
    workers = []

    def call():
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                connection = socket.create_connection(("127.0.0.1", head.port))
            except OSError:
                time.sleep(0.02)
                continue
            with connection:
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
            workers.append(Side(head.port))
            return

    stranger = threading.Thread(target=call, daemon=True)
    stranger.start()
    meet(head)
    assert head.reports(False) == [{"rank": 1, "failed": False}]
    stranger.join(5)
    assert workers[0].error is None


def test_a_port_that_is_taken(head):
    with socket.create_server(("127.0.0.1", head.port)):
        with pytest.raises(_nccl_launch.LaunchError, match="cannot listen at 127.0.0.1 port"):
            meet(head, 0.5)


def test_a_folder_whose_path_is_longer_than_that_of_a_socket(tmp_path):
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    head = _nccl_launch.Head("127.0.0.1", free_port(), 2, KEY, str(folder), _nccl_agent.SOCKET)
    Side(head.port)
    meet(head)
    assert agent(folder, "127.0.0.1", *WORDS) == (7, "out\n", "err\n")
    head.close()
    assert not (folder / _nccl_agent.SOCKET).exists()


def test_a_folder_that_is_gone(tmp_path):
    head = _nccl_launch.Head("127.0.0.1", free_port(), 1, KEY, f"{tmp_path}/gone", _nccl_agent.SOCKET)
    with pytest.raises(_nccl_launch.LaunchError, match="no socket can be at .*gone/agent: No such file"):
        meet(head)


def test_a_first_node_that_is_not_there():
    worker = Side(free_port(), seconds=0.5)
    worker.join()
    assert worker.error.stage == "meet" and "did not come within" in str(worker.error)


def test_a_first_node_that_goes_away_before_it_asks(head):
    worker = Side(head.port)
    meet(head)
    head.close()
    worker.join()
    assert worker.error.stage == "measure" and "went away" in str(worker.error)


def test_a_node_that_went_away_has_left_no_report(head):
    worker = Side(head.port, run=lambda _command, _seconds: 1 / 0)
    meet(head)
    head.workers[1].close()
    assert head.reports(True) == [{"rank": 1, "stage": "unknown", "error": "left no report"}]
    worker.join()


def test_a_command_may_take_no_longer_than_the_first_node_waits(head, tmp_path):
    limits = []
    worker = Side(head.port, run=lambda _command, seconds: limits.append(seconds) or (0, "", ""))
    head.meet(5.0, time.monotonic() + 3)
    assert agent(tmp_path, "127.0.0.1", *WORDS) == (0, "", "")
    assert 1.0 <= limits[0] <= 3.0 and worker.error is None
