#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tree_share
short_description: Let other nodes read one folder by rsync for a while
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Runs an rsync daemon in the transient unit C(gb10-share.service). It listens on one address only, answers the given peers only, gives
    one folder only, read only, as a user without rights, and ends by itself at a time limit.
  - A share that runs already is replaced.
attributes:
  check_mode:
    description: Can run in check mode and predict changes.
    support: full
  diff_mode:
    description: Shows what is shared before and after.
    support: full
options:
  path:
    description: Absolute path of the folder. Required with O(state=present).
    type: path
  address:
    description: Address to listen on, one of this node's own. Required with O(state=present).
    type: str
  port:
    description: TCP port to listen on.
    type: int
    default: 8730
  peers:
    description: Addresses that may read.
    type: list
    elements: str
    default: []
  user:
    description: User that the daemon runs as.
    type: str
    default: gb10
  limit_seconds:
    description: After how many seconds the share ends by itself.
    type: int
    default: 14400
  state:
    description: V(absent) ends the share.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: gb10.fleet.tree_pull
"""

EXAMPLES = r"""
- name: Let the worker read the model
  gb10.fleet.tree_share:
    path: /var/lib/gb10/models/tiny
    address: 192.168.100.10
    peers: [192.168.100.11]
  register: share
  become: true

- name: End it
  gb10.fleet.tree_share:
    state: absent
  become: true
"""

RETURN = r"""
url:
  description: Where the folder can be read.
  returned: when O(state=present)
  type: str
  sample: rsync://192.168.100.10:8730/tree/
"""

import os
import socket
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._run import LATE, MISSING, NOT_RUN, run
from ansible_collections.gb10.fleet.plugins.module_utils._tree_share import CONFIGURATION, UNIT, configuration, unit_command

START_LIMIT = 10.0
# To stop takes as long as systemd gives the daemon to end, which is 90 s where nobody says otherwise.
LIMIT_SECONDS = 120


def answers(address: str, port: int, limit: float) -> bool:
    """Whether something listens before the limit, in seconds."""
    end = time.monotonic() + limit
    while True:
        try:
            with socket.create_connection((address, port), 1.0):
                return True
        except OSError:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)


def start(module: AnsibleModule) -> None:
    """Write the daemon's configuration and start it."""
    params = module.params
    rsync = module.get_bin_path("rsync")
    if rsync is None:
        module.fail_json(msg="There is no rsync on this node: run the role host, which installs it (variable host_packages).")
    if not os.path.isdir(params["path"]):
        module.fail_json(msg=f"{params['path']} is no folder that could be shared: install it first.")
    try:
        os.makedirs(os.path.dirname(CONFIGURATION), exist_ok=True)
        with open(CONFIGURATION, "w", encoding="utf-8") as stream:
            stream.write(configuration(params["path"], params["address"], params["port"], params["peers"]))
    except OSError as error:
        module.fail_json(msg=f"{CONFIGURATION} cannot be written: {error.strerror}. Run as root.")
    command = unit_command(rsync, params["user"], params["limit_seconds"])
    status, output, error = run(module, command, LIMIT_SECONDS)
    if status:
        said = (error or output).strip()
        module.fail_json(msg=f"The share of {params['path']} did not start: {said}. Look at it with: journalctl -u {UNIT}", cmd=command, rc=status)
    if not answers(params["address"], params["port"], START_LIMIT):
        module.fail_json(
            msg=f"Nothing listens on {params['address']} port {params['port']}: the address is not on this node (run the role fabric) or the "
            f"port is taken (choose another by model_share_port). Look at it with: journalctl -u {UNIT}",
        )


def main() -> None:
    """Start or end the share."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path"},
            "address": {"type": "str"},
            "port": {"type": "int", "default": 8730},
            "peers": {"type": "list", "elements": "str", "default": []},
            "user": {"type": "str", "default": "gb10"},
            "limit_seconds": {"type": "int", "default": 14400},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ("path", "address"))],
        supports_check_mode=True,
    )
    present = module.params["state"] == "present"
    status, output, error = run(module, ["systemctl", "is-active", UNIT], LIMIT_SECONDS)
    if status in (LATE, NOT_RUN, MISSING):
        module.fail_json(msg=f"Whether {UNIT} runs cannot be told: {error}.")
    running = output.strip() in ("active", "activating", "deactivating", "reloading")
    url = f"rsync://{module.params['address']}:{module.params['port']}/tree/"
    if not module.check_mode:
        if running:
            status, output, error = run(module, ["systemctl", "stop", UNIT], LIMIT_SECONDS)
            if status:
                module.fail_json(msg=f"{UNIT} cannot be stopped: {(error or output).strip()}. Look at it with: journalctl -u {UNIT}")
        if present:
            start(module)
    module.exit_json(
        changed=running or present,
        diff={"before": "a share\n" if running else "", "after": f"{module.params['path']} at {url}\n" if present else ""},
        **({"url": url} if present else {}),
    )


if __name__ == "__main__":
    main()
