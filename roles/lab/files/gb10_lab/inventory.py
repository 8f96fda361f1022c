# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory of the lab that runs on this machine: `-i lab`. The environment variable GB10_LAB names another than `pair`."""

from __future__ import annotations

import json
import sys

from . import record


def inventory(lab: record.Lab) -> dict:
    """What Ansible's script inventories answer to --list."""
    ssh = {
        "ansible_user": "spark",
        "ansible_ssh_private_key_file": str(lab.key),
        # The nodes' host keys are known, so checking them stays on.
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={lab.known_hosts} -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes",
        # The lab's own folder, so that ending the lab also ends its kept connections.
        "ansible_control_path_dir": str(lab.control_paths),
    }
    clusters: dict[str, dict] = {}
    for node in lab.nodes:
        clusters.setdefault(node.cluster, {"hosts": []})["hosts"].append(node.name)
    return {
        "spark": {"children": list(clusters), "vars": ssh},
        **clusters,
        "_meta": {"hostvars": {node.name: {"ansible_host": node.address} for node in lab.nodes}},
    }


def main() -> int:
    name = record.chosen_name()
    try:
        lab = record.running(name)
    except PermissionError:
        print(f"Lab {name} belongs to root; run this as root.", file=sys.stderr)
        return 1
    if lab is None:
        print(
            f"No lab {name} runs on this machine; start it with `make demo` or `ansible-playbook playbooks/lab.yml -e lab_name={name}`.",
            file=sys.stderr,
        )
        return 1
    print(json.dumps(inventory(lab), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
