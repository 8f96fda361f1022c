"""Record all that spark_facts reads on a node into a folder, from which a test gathers the same facts without the node.

Nothing on the node is changed. Serial numbers, hardware addresses, ids and names are replaced; read the folder before you publish it.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.gb10.fleet.plugins.module_utils._recording import describe, dump  # noqa: E402

PARTS = ("machine", "files", "commands", "facts")
LIMIT = 300
README = """# A recorded node

Recorded by `scripts/record-node` on {date}, format {format}. A test gathers the facts of this machine from it, without the machine.

| what | version |
|---|---|
{versions}

| file | holds |
|---|---|
| `machine.json` | what the node told without a file or a tool |
| `files.json` | what was read of each path: text, what is `written` in a file that sets variables, names in a folder, link, status, bytes of libraries |
| `commands.json` | what each tool answered |
| `facts.json` | what spark_facts made of it |

## What was taken out

On the node, before anything left it. What is replaced is replaced by the same everywhere, so that what was equal still is.

- **Replaced**: serial numbers, GUIDs, MAC addresses, UUIDs (the boot's among them), the machine id, ids of disks and volumes, the names of the
  host and of users, addresses of e-mail, public IPv4 and IPv6 addresses and networks (IPv6 addresses that are made of a MAC are made of what
  stands in its place), hosts in URIs that are not of NVIDIA, Ubuntu, Debian and such.
- **Removed**: values of variables that hold a secret, tokens, passwords, private keys; of start-up and environment files all but the
  variables that spark_facts looks at (NCCL, CUDA, vLLM, Ray and such, PATH); comments; of netplan all but the renderer; of dpkg packages of
  other fields that are not held; peers of connections; gateways; folders and arguments of programs on the GPU.
- **Left**: private addresses and networks (10.x, 192.168.x and such), names of interfaces, versions, sizes, settings of the kernel. GUIDs
  that name a kind of firmware.
"""


def fetch(inventory: str, host: str, become: bool) -> dict:
    """The recording of a host."""
    command = ["ansible", "-i", inventory, host, "-m", "gb10.fleet.node_recording", *(["--become"] if become else [])]
    environment = {**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1"}
    try:
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"{host} did not answer within {LIMIT} s. Is it on, and can you log in?")
    if finished.returncode or "=> {" not in finished.stdout:
        sys.exit((finished.stderr + finished.stdout).strip() or f"ansible ended with {finished.returncode}")
    answers = finished.stdout.count(" => {\n")
    if answers != 1:
        sys.exit(f"{host} names {answers} hosts; name one.")
    return json.JSONDecoder().raw_decode(finished.stdout[finished.stdout.index("=> {") + 3:])[0]["recording"]


def write(recording: dict, folder: Path, date: str) -> None:
    """The recording as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        (folder / f"{part}.json").write_text(dump(recording[part]), encoding="utf-8")
    versions = "\n".join(f"| {name} | {value} |" for name, value in describe(recording))
    text = README.format(date=date, format=recording["format"], versions=versions)
    (folder / "README.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Record a host."""
    parser = argparse.ArgumentParser(prog="scripts/record-node", description=__doc__)
    parser.add_argument("-i", "--inventory", required=True)
    parser.add_argument("-b", "--become", action="store_true", help="read as root, which may read more")
    parser.add_argument("host")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    recording = fetch(arguments.inventory, arguments.host, arguments.become)
    write(recording, arguments.folder, datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    print(f"{arguments.folder}: {len(recording['files'])} files and folders, {len(recording['commands'])} commands")


if __name__ == "__main__":
    main()
