#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_recording
short_description: Records all that spark_facts reads on a node
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Gathers the facts of M(gb10.fleet.spark_facts) and returns every file, folder, link and answer of a tool that was read for them.
    With it a test gathers the facts of that machine again, without the machine.
  - Serial numbers, hardware addresses, UUIDs, GUIDs of devices, the machine id, the host's name and the user's are replaced, each value
    by the same one everywhere, so that two functions of one card still show that they belong together.
  - Of files that tell of people, peers or secrets only the lines are returned that the facts depend on.
  - C(scripts/record-node) writes what it returns into a folder. Read that before you give it to anybody.
attributes:
  check_mode:
    description: Can run in check mode, since nothing is changed.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
options:
  time_limit:
    description: Seconds that each tool may take.
    type: int
    default: 10
seealso:
  - module: gb10.fleet.spark_facts
"""

EXAMPLES = r"""
- name: Record a node
  gb10.fleet.node_recording:
  register: node

- name: Keep it
  ansible.builtin.copy:
    content: "{{ node.recording | to_nice_json }}"
    dest: recording.json
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
recording:
  description: What was read.
  returned: success
  type: dict
  contains:
    format:
      description: Version of this format.
      returned: success
      type: int
      sample: 1
    machine:
      description: What the node tells without a file or a tool.
      returned: success
      type: dict
      sample:
        cpus: 20
        now: 1796080809.498417
        python: 3.12.3
        space:
          /: {total_bytes: 983349346304, free_bytes: 812309843968, inodes_free: 60112384, inodes_total: 61054976}
        synchronized: true
        uname: {sysname: Linux, release: 6.17.0-1029-nvidia, version: "#29-Ubuntu SMP", machine: aarch64}
        variables: {HOME: /home/user}
    files:
      description:
        - By path what was read there. V(text) or V(bytes) of a file, V(names) of a folder, the target of a V(link), V(status), and V(denied) where
          the user may not read. A path that is missing was not there.
      returned: success
      type: dict
      sample:
        /etc/fastos-release: {text: 'VERSION="1.91.51"'}
        /sys/class/infiniband: {names: [rocep1s0f0, rocep1s0f1]}
    commands:
      description: What each tool answered. The status is 124 for one that was late, 127 for one that is not installed.
      returned: success
      type: list
      elements: dict
      sample:
        - {argv: [ibv_devinfo], status: 127, output: "", error: ibv_devinfo is not on this node; install the package that has it}
    facts:
      description: The facts that M(gb10.fleet.spark_facts) makes of it.
      returned: success
      type: dict
      sample: {proven: {}, unread: []}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._recording import record


def main() -> None:
    module = AnsibleModule(argument_spec={"time_limit": {"type": "int", "default": 10}}, supports_check_mode=True)
    if module.params["time_limit"] < 1:
        module.fail_json(msg=f"time_limit is {module.params['time_limit']}; give the whole seconds that a tool may take, 1 or more.")
    module.exit_json(changed=False, recording=record(module, module.params["time_limit"]))


if __name__ == "__main__":
    main()
