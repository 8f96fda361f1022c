# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The meeting of the modules of one gate, by which mpirun of the first node starts programs on the others without ssh between them.

nccl-tests knows its ranks from MPI alone. mpirun asks an agent, ssh by default, to start its daemon on each other node. Here the agent
asks the module on the first node, which sends the command to the module that waits on the other node. The others come with a key that
only the controller and the modules of this run know, and run nothing but Open MPI's daemon, without a shell.
"""

from __future__ import annotations

import hmac
import json
import os
import shlex
import socket
import threading
import time
import typing as t

DAEMONS = ("orted", "prted")
LONGEST_LINE = 1 << 20
SECONDS_BETWEEN_TRIES = 0.3
# To leave time for the reports.
REPORT_SECONDS = 5

Run = t.Callable[[t.Sequence[str], float], t.Tuple[int, str, str]]


class LaunchError(Exception):
    """Why the nodes do not come together, in a sentence, and at which stage."""

    def __init__(self, stage: str, what: str) -> None:
        super().__init__(what)
        self.stage = stage


def daemon_command(words: t.Sequence[str]) -> list[str] | None:
    """Open MPI's daemon and its arguments in what mpirun gives its agent; None when it is something else.

    Words are for a shell: in front the daemon may have assignments of PATH and LD_LIBRARY_PATH, which the module has by itself.
    """
    try:
        parts = shlex.split(" ".join(words))
    except ValueError:
        return None
    place = next((number for number, part in enumerate(parts) if os.path.basename(part) in DAEMONS), None)
    return None if place is None else parts[place:]


class Talk:
    """One end of a connection: a JSON object a line."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.stream = connection.makefile("rw", encoding="utf-8")
        self.turn = threading.Lock()

    def tell(self, value: t.Any) -> None:
        self.stream.write(json.dumps(value) + "\n")
        self.stream.flush()

    def hear(self, seconds: float) -> t.Any:
        """What the other end says, None when it is gone, late, or says what is no object."""
        try:
            self.connection.settimeout(max(0.1, seconds))
            heard = json.loads(self.stream.readline(LONGEST_LINE) or "null")
        except (OSError, ValueError):
            return None
        return heard if isinstance(heard, dict) else None

    def close(self) -> None:
        try:
            self.stream.close()
        except OSError:
            pass
        self.connection.close()


class Head:
    """The first node's side: knows the others by rank and has their commands run."""

    def __init__(self, address: str, port: int, world: int, key: str, folder: str, agent_socket: str) -> None:
        self.address, self.port, self.world, self.key = address, port, world, key
        self.agent_path = os.path.join(folder, agent_socket)
        self.workers: dict[int, Talk] = {}
        self.addresses: dict[int, str] = {}
        self.agents: socket.socket | None = None
        self.end = 0.0

    def meet(self, seconds: float, end: float) -> None:
        """Wait for the others.

        Raises:
            LaunchError: a port that is taken, or a rank that did not come.
        """
        self.end = end
        deadline = time.monotonic() + seconds
        try:
            listener = socket.create_server((self.address, self.port))
        except OSError as error:
            raise LaunchError("meet", f"cannot listen at {self.address} port {self.port}: {error.strerror}") from error
        with listener:
            while len(self.workers) < self.world - 1:
                left = deadline - time.monotonic()
                missing = [str(rank) for rank in range(1, self.world) if rank not in self.workers]
                if left <= 0:
                    raise LaunchError("meet", f"rank {', '.join(missing)} did not come within {seconds:.0f} s")
                listener.settimeout(left)
                try:
                    connection, peer = listener.accept()
                except OSError:
                    continue
                self._admit(Talk(connection), peer[0], min(left, 5.0))
        self.agents = self._listen_for_agents()
        threading.Thread(target=self._serve_agents, daemon=True).start()

    def _listen_for_agents(self) -> socket.socket:
        agents = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            folder = os.open(os.path.dirname(self.agent_path), os.O_RDONLY)
            try:
                # The path of a socket has 107 characters at most, and Ansible's temporary folders take as many as they like.
                agents.bind(f"/proc/self/fd/{folder}/{os.path.basename(self.agent_path)}")
            finally:
                os.close(folder)
        except OSError as error:
            agents.close()
            raise LaunchError("program", f"no socket can be at {self.agent_path}: {error.strerror}") from error
        agents.listen(self.world)
        return agents

    def _admit(self, talk: Talk, address: str, seconds: float) -> None:
        hello = talk.hear(seconds) or {}
        rank = hello.get("rank")
        known = hmac.compare_digest(str(hello.get("key")).encode(), self.key.encode())
        if known and isinstance(rank, int) and 0 < rank < self.world and rank not in self.workers:
            self.workers[rank], self.addresses[rank] = talk, address
        else:
            talk.close()

    def hosts(self) -> list[str]:
        """Addresses of all nodes in the order of their ranks."""
        return [self.address, *(self.addresses[rank] for rank in range(1, self.world))]

    def _serve_agents(self) -> None:
        while self.agents is not None:
            try:
                connection, _peer = self.agents.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_agent, args=(Talk(connection),), daemon=True).start()

    def _serve_agent(self, talk: Talk) -> None:
        asked = talk.hear(10.0) or {}
        rank = next((rank for rank, address in self.addresses.items() if address == asked.get("host")), None)
        if rank is None:
            answer = {"status": 1, "output": "", "error": f"{asked.get('host')} is no node of this gate\n"}
        else:
            answer = self._ask(rank, {"run": asked.get("words"), "limit": self.end - time.monotonic()}) or {}
        try:
            talk.tell({"status": 1, "output": "", "error": f"rank {rank} went away\n", **answer})
        except OSError:
            pass
        talk.close()

    def _ask(self, rank: int, what: t.Mapping[str, t.Any]) -> t.Any:
        worker = self.workers[rank]
        with worker.turn:
            try:
                worker.tell(what)
            except (OSError, ValueError):
                return None  # gone, or closed here
            return worker.hear(self.end - time.monotonic() + REPORT_SECONDS)

    def reports(self, failed: bool) -> list[dict[str, t.Any]]:
        """What the others have to say of a run, in the order of their ranks."""
        found = []
        for rank in range(1, self.world):
            said = self._ask(rank, {"report": True, "failed": failed}) if rank in self.workers else None
            found.append(said or {"rank": rank, "stage": "unknown", "error": "left no report"})
        return found

    def close(self) -> None:
        """Let the others go."""
        agents, self.agents = self.agents, None
        if agents is not None:
            agents.close()
            os.unlink(self.agent_path)
        for worker in self.workers.values():
            worker.close()


def work(address: str, port: int, rank: int, key: str, seconds: float, end: float, run: Run, report: t.Callable[[bool], dict[str, t.Any]]) -> None:
    """Another node's side: come to the first node, and do what it asks until it lets go.

    Args:
        address, port: where the first node listens.
        rank: this node's rank.
        key: what tells the first node that this is one of the gate.
        seconds: how long the first node may take to be there.
        end: when all must be over, on the monotonic clock.
        run: runs a program with its arguments for so many seconds.
        report: what this node has to say of a run that failed or did not.

    Raises:
        LaunchError: the first node was not there, or went away before it asked for the report.
    """
    talk = _come(address, port, seconds)
    try:
        talk.tell({"rank": rank, "key": key})
        reported = False
        while True:
            asked = talk.hear(end - time.monotonic())
            if asked is None:
                break
            if asked.get("report"):
                talk.tell(report(bool(asked.get("failed"))))
                reported = True
            else:
                talk.tell(_obey(asked, end, run))
    except OSError as error:
        raise LaunchError("measure", f"the first node went away: {error.strerror}") from error
    finally:
        talk.close()
    if not reported:
        raise LaunchError("measure" if time.monotonic() < end else "late", "the first node went away or took too long")


def _come(address: str, port: int, seconds: float) -> Talk:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return Talk(socket.create_connection((address, port), timeout=max(0.1, deadline - time.monotonic())))
        except OSError as error:
            if time.monotonic() + SECONDS_BETWEEN_TRIES > deadline:
                what = f"rank 0 at {address} port {port} did not come within {seconds:.0f} s: {error.strerror or error}"
                raise LaunchError("meet", what) from error
        time.sleep(SECONDS_BETWEEN_TRIES)


def _obey(asked: t.Mapping[str, t.Any], end: float, run: Run) -> dict[str, t.Any]:
    words = asked.get("run")
    command = daemon_command(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else None
    if command is None:
        return {"status": 126, "output": "", "error": "only Open MPI's daemon is run here\n"}
    limit, left = asked.get("limit"), end - time.monotonic()
    # With mpirun its daemon must go, or the first node waits for it in vain.
    status, output, error = run(command, max(1.0, min(left, limit) if isinstance(limit, (int, float)) else left))
    return {"status": status, "output": output, "error": error}
