# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Open MPI runs in the place of ssh: `AGENT HOST COMMAND...`. It asks the gate on this node to have the command run on the host.

The module nccl_gate lays this text into its own folder, which holds the socket too.
"""

from __future__ import annotations

import json
import os
import socket
import sys

SOCKET = "agent"


def ask(host, words):
    """The answer of the gate: {status, output, error}."""
    # By its name alone: the path of a socket has 107 characters at most.
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(SOCKET)
        with connection.makefile("rw", encoding="utf-8") as stream:
            stream.write(json.dumps({"host": host, "words": words}) + "\n")
            stream.flush()
            return json.loads(stream.readline() or '{"status": 1, "output": "", "error": "the gate on this node ended"}')


def main():
    """Run the command on the host, and end as it ends."""
    if len(sys.argv) < 3:
        return 2
    answer = ask(sys.argv[1], sys.argv[2:])
    sys.stdout.write(answer["output"])
    sys.stderr.write(answer["error"])
    return answer["status"]


if __name__ == "__main__":
    raise SystemExit(main())
