#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: credential
short_description: Have a secret in a root-only file, made once
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Keeps the secret that is in the file. Where there is none, writes O(value), or random hexadecimal digits.
  - Returns the secret, so that a task can hand it to another node. Such a task says C(no_log=true).
attributes:
  check_mode:
    description: Can run in check mode. A secret that would be made is made up and not written.
    support: full
  diff_mode:
    description: Says that the file would be written, never what is in it.
    support: full
options:
  path:
    description: Absolute path of the file. Its folder must exist, other than in check mode.
    type: path
    required: true
  value:
    description: The secret to have. What is there is replaced when it differs. Kept, or made once, when not given.
    type: str
  bytes:
    description: How many random bytes a secret that is made has, two hexadecimal digits each.
    type: int
    default: 32
  state:
    description: V(absent) removes the file.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Make the token of the Ray cluster once
  gb10.fleet.credential:
    path: /etc/gb10/credentials/ray-token
  register: ray_token
  no_log: true
  become: true
"""

RETURN = r"""
value:
  description: The secret that the file holds after the call.
  returned: when O(state=present)
  type: str
  sample: 6d1f0c3f5e2b4a998f7d6c5b4a392817f6e5d4c3b2a190807f6e5d4c3b2a1908
"""

import os
import secrets
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule

SHORTEST = 16


def read_secret(path: str) -> str | None:
    """The secret in a file without white space around it, None when there is no file or nothing in it."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().strip() or None
    except FileNotFoundError:
        return None


def mode_and_owner(path: str) -> tuple[int, int, int]:
    """Permission bits, user id and group id of a file."""
    status = os.stat(path)
    return (status.st_mode & 0o7777, status.st_uid, status.st_gid)


def write_secret(path: str, value: str) -> None:
    """Put a secret into a file that only its owner reads, whole or not at all.

    Raises:
        OSError: the folder is missing or cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".credential-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(value + "\n")
        os.chmod(temporary, 0o600)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def main() -> None:
    """Keep, make or remove the secret."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "value": {"type": "str", "no_log": True},
            "bytes": {"type": "int", "default": 32},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path: str = module.params["path"]
    if not os.path.isabs(path):
        module.fail_json(msg=f"path is {path}, which is not absolute: name the file from the root on.")
    if module.params["state"] == "absent":
        changed = os.path.lexists(path)
        if changed and not module.check_mode:
            os.unlink(path)
        module.exit_json(changed=changed, diff={"before": f"{path} is there\n" if changed else "", "after": ""})
    if module.params["bytes"] < SHORTEST:
        module.fail_json(msg=f"bytes is {module.params['bytes']}, which is easily guessed: ask for {SHORTEST} or more.")

    result: dict[str, t.Any] = {}
    try:
        found = read_secret(path)
        value = module.params["value"] or found or secrets.token_hex(module.params["bytes"])
        changed = value != found or mode_and_owner(path) != (0o600, os.geteuid(), os.getegid())
        if changed and not module.check_mode:
            write_secret(path, value)
        result = {"changed": changed, "value": value}
    except OSError as error:
        module.fail_json(msg=f"The secret in {path} cannot be kept: {error.strerror}. Run as root after the role host.")
    after = f"{path}, mode 0600, a secret of {len(value)} characters\n"
    before = after if not result["changed"] else f"{path}, with another secret or mode\n" if found else ""
    module.exit_json(diff={"before": before, "after": after}, **result)


if __name__ == "__main__":
    main()
