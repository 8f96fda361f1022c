# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mpirun and orted of Open MPI 4: one process on each host, the first here, the others by the daemon that the agent starts there.

What mpirun gives the agent has the real one's shape: words for a shell, assignments in front, values in quotes. The daemon here takes its
processes from its command line, where the real one gets them over the connection that its arguments name."""

from __future__ import annotations

import argparse
import base64
import json
import os
import shlex
import socket
import subprocess
import sys

AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
PREFIX = "PATH=/usr/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/usr/lib:$LD_LIBRARY_PATH ; export LD_LIBRARY_PATH ; /usr/bin/orted"
NOT_STARTED = 213


def options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mpirun", allow_abbrev=False)
    parser.add_argument("-np", type=int, default=1)
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--map-by")
    parser.add_argument("--bind-to")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as listener:
        return listener.getsockname()[1]


def of_rank(rank: int, size: int, meeting: str) -> dict[str, str]:
    """What Open MPI puts into the environment of a process, and where the ranks meet, which MPI would carry to them."""
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_LOCAL_RANK": "0", "NCCL_COMM_ID": meeting}


def daemon_words(rank: int, size: int, meeting: str, program: list[str]) -> list[str]:
    job = base64.b64encode(json.dumps({"environment": of_rank(rank, size, meeting), "program": program}).encode()).decode()
    return [PREFIX, "-mca", "ess", '"env"', "-mca", "ess_base_vpid", str(rank), "-mca", "lab_job", f'"{job}"']


def mpirun(argv: list[str]) -> int:
    wanted = options(argv)
    hosts = [word.partition(":")[0] for word in wanted.host.split(",")][: wanted.np]
    agent = next((shlex.split(os.environ[name]) for name in AGENTS if os.environ.get(name)), ["ssh"])
    meeting = f"{hosts[0]}:{free_port(hosts[0])}"
    here = subprocess.Popen(wanted.program, env={**os.environ, **of_rank(0, len(hosts), meeting)})
    others = [
        subprocess.Popen([*agent, host, *daemon_words(rank, len(hosts), meeting, wanted.program)], stdin=subprocess.DEVNULL)
        for rank, host in enumerate(hosts[1:], 1)
    ]
    codes = [process.wait() for process in others]
    if any(codes):
        # A daemon that does not come ends the job.
        here.terminate()
        print("ORTE was unable to reliably start one or more daemons." if NOT_STARTED in codes else "mpirun: a process ended with an error", file=sys.stderr)
    return here.wait() or next((code for code in codes if code), 0)


def orted(argv: list[str]) -> int:
    job = json.loads(base64.b64decode(argv[argv.index("lab_job") + 1]))
    return subprocess.run(job["program"], env={**os.environ, **job["environment"]}, check=False).returncode


if __name__ == "__main__":
    sys.exit({"mpirun": mpirun, "orted": orted}[sys.argv[1]](sys.argv[2:]))
