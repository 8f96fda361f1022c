#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: package_info
short_description: Read which packages are installed, and how an account is
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Asks C(dpkg-query) for the named packages only, where M(ansible.builtin.package_facts) reads all and keeps them as facts.
  - Reads an account in the same call, since each call to a node costs a third of a second.
  - What C(dpkg-query) cannot answer is an error, and never counts as a package that is missing.
attributes:
  check_mode:
    description: Can run in check mode, since nothing is changed.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
options:
  names:
    description: Names of packages, without version or architecture.
    type: list
    elements: str
    required: true
  user:
    description: Name of an account to read too.
    type: str
notes:
  - Only root learns whether the account's password is locked.
seealso:
  - module: ansible.builtin.package_facts
"""

EXAMPLES = r"""
- name: Look for packages and for the service user
  gb10.fleet.package_info:
    names: [rsync, libnuma1]
    user: gb10
  register: found
  become: true

- name: Show what is missing
  ansible.builtin.debug:
    msg: "{{ found.packages | dict2items | selectattr('value', 'none') | map(attribute='key') }}"
"""

RETURN = r"""
packages:
  description: The installed version of each package, V(null) for one that is not installed.
  returned: success
  type: dict
  sample: {rsync: 3.2.7-1ubuntu1.2, libnuma1: null}
user:
  description: The account, V(null) when there is none of that name or none was asked for.
  returned: success
  type: dict
  contains:
    home:
      description: Its home folder.
      returned: always
      type: str
      sample: /var/lib/gb10
    shell:
      description: Its shell.
      returned: always
      type: str
      sample: /usr/sbin/nologin
    locked:
      description: Whether no password opens it; V(null) when this user may not read that.
      returned: always
      type: bool
      sample: true
"""

import pwd
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils import _packages
from ansible_collections.gb10.fleet.plugins.module_utils._run import run

SHADOW = "/etc/shadow"


def installed(module: AnsibleModule, names: list[str]) -> dict[str, str | None]:
    """Versions by name; fails when dpkg-query does not answer."""
    for name in names:
        if not _packages.NAME.fullmatch(name):
            module.fail_json(msg=f"names has '{name}', which is no name of a package: write it without version or architecture.")
    if not names:
        # Without names dpkg-query lists everything.
        return {}
    rc, stdout, stderr = run(module, ["dpkg-query", "-W", "-f", _packages.FORMAT, *names])
    try:
        return _packages.parse_versions(names, rc, stdout, stderr)
    except ValueError as error:
        return module.fail_json(msg=f"dpkg-query cannot tell what is installed: {error}. Mend dpkg on this node (dpkg --audit).")


def account(name: str) -> dict[str, t.Any] | None:
    """Home, shell and whether it is locked; None when there is no such account."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    try:
        with open(SHADOW, encoding="utf-8", errors="replace") as stream:
            locked: bool | None = _packages.password_locked(stream.read(), name)
    except OSError:
        locked = None
    return {"home": entry.pw_dir, "shell": entry.pw_shell, "locked": locked}


def main() -> None:
    """Look."""
    module = AnsibleModule(
        argument_spec={"names": {"type": "list", "elements": "str", "required": True}, "user": {"type": "str"}},
        supports_check_mode=True,
    )
    user = module.params["user"]
    module.exit_json(changed=False, packages=installed(module, module.params["names"]), user=account(user) if user else None)


if __name__ == "__main__":
    main()
