#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tree_manifest
short_description: The files of a folder with their SHA-256, and what is wrong with them
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Lists the files of a folder with size and SHA-256, and one digest over all of them that is the same wherever the same files are.
  - Looks for what a broken download or clone leaves. These are git-LFS pointers, links to nothing, unfinished files, shards that the index
    names and that are missing, and safetensors files that are cut off.
  - Links to files count as the files. The folders C(.git) and C(.cache) on top are left out.
  - Reads again only what has another size, time or inode than O(record) says.
attributes:
  check_mode:
    description: Can run in check mode. The record is not brought up to date then.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
options:
  path:
    description: Absolute path of the folder.
    type: path
    required: true
  record:
    description:
      - File in which M(gb10.fleet.tree_pull) keeps what it installed at O(installed), with the sums of all files read so far.
      - One that exists gets the sums of what is newly read. That is a memory of this module and counts as no change.
    type: path
  installed:
    description: Folder that M(gb10.fleet.tree_pull) would write, to be looked at as well.
    type: path
seealso:
  - module: gb10.fleet.tree_pull
"""

EXAMPLES = r"""
- name: Look at a model
  gb10.fleet.tree_manifest:
    path: /srv/models/tiny
    record: /var/lib/gb10/manifests/tiny.json
    installed: /var/lib/gb10/models/tiny
  register: model
  become: true
"""

RETURN = r"""
exists:
  description: Whether the folder exists.
  returned: success
  type: bool
  sample: true
files:
  description: Its files in alphabetical order. Those with a problem are left out.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Path below the folder.
      type: str
      sample: config.json
    size:
      description: Size in bytes.
      type: int
      sample: 662
    sha256:
      description: SHA-256 of the content.
      type: str
      sample: 7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730
  sample:
    - path: config.json
      size: 662
      sha256: 7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730
bytes:
  description: Their sizes together.
  returned: success
  type: int
  sample: 2205334
digest:
  description: One SHA-256 over names, sizes and contents, null without a file.
  returned: success
  type: str
  sample: 4c5e2b0e16b52e6bbd3cd1a9e0d95a7ac9b1ce7b1f1ddc26a60ea0f1d5be92a1
problems:
  description: What is wrong, one sentence each, without a full stop.
  returned: success
  type: list
  elements: str
  sample: ["model.safetensors is a git-LFS pointer instead of the file, which git lfs pull fetches"]
readable:
  description: Whether every user can read all of it by its mode bits.
  returned: success
  type: bool
  sample: true
installed:
  description: What lies at O(installed).
  returned: when O(installed) is given
  type: dict
  contains:
    exists:
      description: Whether something lies there.
      type: bool
      sample: true
    digest:
      description: As RV(digest), null also when a file has a problem.
      type: str
      sample: 4c5e2b0e16b52e6bbd3cd1a9e0d95a7ac9b1ce7b1f1ddc26a60ea0f1d5be92a1
    foreign:
      description: Whether somebody else put it there, since there is no record.
      type: bool
      sample: false
    sound:
      description: Whether it is as recorded, modes and owners are right and no half-built tree lies beside it.
      type: bool
      sample: true
  sample:
    exists: true
    digest: 4c5e2b0e16b52e6bbd3cd1a9e0d95a7ac9b1ce7b1f1ddc26a60ea0f1d5be92a1
    foreign: false
    sound: true
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._lock import LockedError, locked
from ansible_collections.gb10.fleet.plugins.module_utils._tree import installed_state, read_record, scan, write_record

# As long as another run may copy a model.
LOCK_SECONDS = 1800


def main() -> None:
    """Look, and remember what was read."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "record": {"type": "path"},
            "installed": {"type": "path"},
        },
        supports_check_mode=True,
    )
    result: dict[str, t.Any] = {}
    try:
        record = read_record(module.params["record"])
        seen: dict[str, list[t.Any]] = dict(record["seen"]) if record else {}
        result = scan(module.params["path"], seen)
        del result["plain"]
        if module.params["installed"]:
            result["installed"] = installed_state(module.params["installed"], record, seen)
        if record and any(record["seen"].get(path) != known for path, known in seen.items()) and not module.check_mode:
            # Reading takes long: what was installed meanwhile stays recorded.
            with locked(os.path.dirname(module.params["record"]), LOCK_SECONDS):
                current = read_record(module.params["record"]) or record
                write_record(module.params["record"], {**current, "seen": {**current["seen"], **seen}})
    except (ValueError, LockedError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be read or written: {error.strerror}. Run as root after the role host.")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
