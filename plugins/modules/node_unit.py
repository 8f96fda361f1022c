#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_unit
short_description: Have a systemd unit enabled and running with what is on the disk now
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Enables and starts a unit, and restarts it when one of its inputs was written after it started.
  - So a change reaches the unit also when an earlier run ended between writing a file and restarting, which a handler forgets.
  - Does not wait until the unit is ready. A unit that systemd is starting again by itself counts as running.
attributes:
  check_mode:
    description: Can run in check mode and predict changes, also when the unit does not exist yet.
    support: full
  diff_mode:
    description: Shows the unit's state before and after.
    support: full
options:
  name:
    description: Name of the unit with its suffix.
    type: str
    required: true
  state:
    description: V(absent) stops and disables the unit. Its file is not touched.
    type: str
    choices: [started, absent]
    default: started
  inputs:
    description: Paths that the unit reads when it starts. Of a link the link itself counts. Missing ones are left out.
    type: list
    elements: path
    default: []
  restart:
    description: Restart a running unit whatever its inputs say. For check mode, in which a changed file is not written.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run Ray
  gb10.fleet.node_unit:
    name: gb10-ray.service
    inputs: [/etc/gb10/ray.env, /etc/gb10/nccl.env, /opt/gb10/current]
    restart: "{{ ray_files.changed }}"
  become: true
"""

RETURN = r"""
steps:
  description: What was done, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [enable, start]
stale:
  description: Inputs that were newer than the unit's start.
  returned: success
  type: list
  elements: str
  sample: [/etc/gb10/nccl.env]
active:
  description: What systemd said of the unit before anything was done.
  returned: success
  type: str
  sample: active
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._node_unit import PROPERTIES, newer_inputs, parse_show, steps
from ansible_collections.gb10.fleet.plugins.module_utils._run import run

COMMANDS = {
    "reload": ["daemon-reload"],
    "enable": ["enable"],
    "disable": ["disable"],
    "start": ["start", "--no-block"],
    "stop": ["stop"],
}
# To stop takes as long as the unit's TimeoutStopSec, and then the kill.
LIMIT_SECONDS = 60


class Systemctl:
    """Runs systemctl, and ends the module with what it said when that fails."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def run(self, *arguments: str) -> str:
        """Standard output of a systemctl call that must succeed."""
        command = ["systemctl", *arguments]
        status, output, error = run(self.module, command, LIMIT_SECONDS)
        if status:
            said = (error or output).strip()
            self.module.fail_json(
                msg=f"systemctl {' '.join(arguments)} failed: {said}. Look at it with: journalctl -u {arguments[-1]}",
                cmd=command, rc=status, stdout=output, stderr=error,
            )
        return output


def main() -> None:
    """Compare, then do what is to be done."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "absent"], "default": "started"},
            "inputs": {"type": "list", "elements": "path", "default": []},
            "restart": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    name, wanted = module.params["name"], module.params["state"]
    systemctl = Systemctl(module)
    show = ["show", "--timestamp=us+utc", f"--property={','.join(PROPERTIES)}", name]
    state = parse_show(systemctl.run(*show))
    if wanted == "started" and not state["found"] and not module.check_mode:
        # A unit file that has just been written is found after a reload only.
        systemctl.run("daemon-reload")
        state = parse_show(systemctl.run(*show))
        if not state["found"]:
            module.fail_json(msg=f"There is no unit {name} on this node. Write its file to /etc/systemd/system first.")
    changed = {path: os.lstat(path).st_mtime for path in module.params["inputs"] if os.path.lexists(path)}
    stale = newer_inputs(state["started"], changed)
    todo = steps(state, wanted, stale, module.params["restart"])
    if not module.check_mode:
        for step in todo:
            systemctl.run(*COMMANDS[step], *([] if step == "reload" else [name]))
        # A unit that had to be killed stays failed, and would be listed so after its file is gone.
        if wanted == "absent" and "stop" in todo and parse_show(systemctl.run(*show))["active"] == "failed":
            systemctl.run("reset-failed", name)
    words = {True: "enabled", False: "disabled"}
    before = f"{name}: {state['active']}, {words[state['enabled']]}\n"
    after = f"{name}: {'active' if wanted == 'started' else 'inactive'}, {words[wanted == 'started']}\n" if todo else before
    module.exit_json(changed=bool(todo), steps=todo, stale=stale, active=state["active"], diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
