#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_files
short_description: Own files, folders and links on a node, and give them back
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Writes a list of files, folders and links in one call, only where they differ.
  - What was at a path before the first write is kept byte for byte, with mode and owner, in C(/var/lib/gb10/backup).
    O(state=absent) puts it back, and removes what was not there before.
  - Paths that an earlier call with the same O(name) listed and this one does not are given back as well.
  - Folders that are missing above a listed path are made with mode C(0755) and removed again with it.
attributes:
  check_mode:
    description: Can run in check mode and predict changes, also when owner, group or folders do not exist yet.
    support: full
  diff_mode:
    description: Returns details on what has changed or would change. Content of sensitive files is hidden.
    support: full
options:
  name:
    description:
      - Who manages these paths, as a rule the name of the role. Each path belongs to one name.
    type: str
    required: true
  state:
    description:
      - V(present) makes O(files) so, V(absent) gives back everything that O(name) manages.
    type: str
    choices: [present, absent]
    default: present
  files:
    description:
      - The paths. Folders are made first, parents before children; files and links follow in this order.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      kind:
        description: What to make of the path.
        type: str
        choices: [file, directory, link]
        default: file
      content:
        description: The whole text of a file. Required for V(file).
        type: str
      source:
        description: What a link points to. Required for V(link).
        type: str
      mode:
        description: Mode as an octal string. V(0644) for files and V(0755) for folders if unset; links have none.
        type: str
      owner:
        description: Name of the user who owns it.
        type: str
        default: root
      group:
        description: Name of the group.
        type: str
        default: root
      sensitive:
        description: Keep the content out of the diff. Set C(no_log) on the task too, which keeps it out of its arguments.
        type: bool
        default: false
seealso:
  - module: ansible.builtin.copy
"""

EXAMPLES = r"""
- name: Write the environment of Ray
  gb10.fleet.node_files:
    name: ray
    files:
      - path: /etc/gb10/credentials
        kind: directory
        mode: "0700"
      - path: /etc/gb10/ray.env
        content: |
          RAY_AUTH_MODE=token
  become: true

- name: Give back everything that the role wrote
  gb10.fleet.node_files:
    name: ray
    state: absent
  become: true
"""

RETURN = r"""
changed_paths:
  description: Paths that were, or in check mode would be, written, removed or given back, in that order.
  returned: success
  type: list
  elements: str
  sample: [/etc/gb10/ray.env]
backups:
  description: Paths whose foreign content was kept in this call, before it was overwritten.
  returned: success
  type: list
  elements: str
  sample: [/etc/netplan/60-gb10-fabric.yaml]
kept:
  description: Folders of ours that stay because somebody else has files in them.
  returned: success
  type: list
  elements: str
  sample: [/var/lib/gb10/models]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._lock import LockedError
from ansible_collections.gb10.fleet.plugins.module_utils._node_files import (
    NodeFilesError,
    diff_of,
    entries_from,
    opened,
)


def argument_spec():
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "files": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "path": {"type": "path", "required": True},
                "kind": {"type": "str", "choices": ["file", "directory", "link"], "default": "file"},
                "content": {"type": "str"},
                "source": {"type": "str"},
                "mode": {"type": "str"},
                "owner": {"type": "str", "default": "root"},
                "group": {"type": "str", "default": "root"},
                "sensitive": {"type": "bool", "default": False},
            },
        },
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        with opened(module.params["name"], module.check_mode) as files:
            if module.params["state"] == "present":
                result = files.present(entries_from(module.params["files"]))
            else:
                result = files.absent()
    except LockedError as error:
        module.fail_json(msg=f"node_files ({module.params['name']}): {error}")
    except NodeFilesError as error:
        module.fail_json(msg=f"node_files ({module.params['name']}): {error}.")
    except PermissionError as error:
        module.fail_json(
            msg=f"node_files ({module.params['name']}) may not touch {error.filename}: {error.strerror};"
            " the task needs become: true and a user who may use sudo."
        )
    except OSError as error:
        module.fail_json(
            msg=f"node_files ({module.params['name']}) could not handle {error.filename}: {error.strerror};"
            " mend this on the node and run again, nothing that was there before is lost."
        )
    module.exit_json(
        changed=bool(result.changes),
        changed_paths=[change.path for change in result.changes],
        backups=result.backups,
        kept=result.kept,
        diff=diff_of(result.changes),
    )


if __name__ == "__main__":
    main()
