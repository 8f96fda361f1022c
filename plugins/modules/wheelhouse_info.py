#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wheelhouse_info
short_description: See what a folder of wheels holds, and whether this node can install it
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Reads the names of the wheels in a folder and its C(requirements.txt), which pins and hashes them.
  - Compares the wheels with this node's Python, architecture and glibc. Wheels are not opened.
attributes:
  check_mode:
    description: Can run in check mode, since nothing is changed.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
options:
  path:
    description: The folder, C(spark_wheelhouse) of the inventory.
    type: path
    required: true
  python:
    description: First two numbers of the Python that the wheels shall run on. Whatever C(python3) is when not given.
    type: str
  versions:
    description:
      - Versions that the folder must hold, by distribution. Local parts such as C(+cu128) do not count, and V(null) is any version.
    type: dict
    default: {}
seealso:
  - module: gb10.fleet.vllm_release
"""

EXAMPLES = r"""
- name: Look at the wheelhouse
  gb10.fleet.wheelhouse_info:
    path: /srv/wheelhouse
    python: "3.12"
    versions:
      vllm: 0.33.0
  register: wheelhouse
"""

RETURN = r"""
exists:
  description: Whether there is such a folder.
  returned: success
  type: bool
  sample: true
requirements:
  description: Whether it has a C(requirements.txt).
  returned: success
  type: bool
  sample: true
wheels:
  description: The wheels, by their file names.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the distribution, in lower case with hyphens.
      returned: always
      type: str
      sample: vllm
    version:
      description: Its version.
      returned: always
      type: str
      sample: 0.33.0
    tags:
      description: The tags of Python, ABI and platform.
      returned: always
      type: str
      sample: cp38-abi3-manylinux_2_28_aarch64
    file:
      description: Name of the file.
      returned: always
      type: str
      sample: vllm-0.33.0-cp38-abi3-manylinux_2_28_aarch64.whl
    size:
      description: Its size in bytes.
      returned: always
      type: int
      sample: 349175808
vllm:
  description: The pinned version of vLLM, V(null) if there is none.
  returned: success
  type: str
  sample: 0.33.0
torch:
  description: The pinned version of torch, V(null) if there is none.
  returned: success
  type: str
  sample: 2.14.0
ray:
  description: The pinned version of Ray, V(null) if there is none.
  returned: success
  type: str
  sample: 2.60.0
key:
  description: First 12 digits of the SHA-256 of C(requirements.txt), V(null) if there is none.
  returned: success
  type: str
  sample: 24f655fd2407
machine_ok:
  description: Whether every pinned wheel fits this node.
  returned: success
  type: bool
  sample: true
reason:
  description: Why it does not.
  returned: success
  type: str
  sample: vllm-0.33.0-cp38-abi3-manylinux_2_28_aarch64.whl is for aarch64, and this node is x86_64
problems:
  description: What keeps this node from installing the wheels, each as a sentence with the cure.
  returned: success
  type: list
  elements: str
  sample:
    - spark_wheelhouse is /srv/wheelhouse, and there is no such folder. Put the wheels and their requirements.txt there.
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._node_python import find_python
from ansible_collections.gb10.fleet.plugins.module_utils._wheelhouse import inspect


def main() -> None:
    """Look."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "python": {"type": "str"},
            "versions": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    path = module.params["path"]
    python, missing = find_python(module, module.params["python"])
    if python is None:
        # The folder can still be described, by any Python there is.
        python, dummy = find_python(module, None)
        if python is None:
            module.fail_json(msg=f"wheelhouse_info: {missing}")
    try:
        report = inspect(path, python.machine, module.params["versions"])
    except OSError as error:
        module.fail_json(msg=f"spark_wheelhouse is {path}, which cannot be read: {error.strerror}. Let everybody read {error.filename}.")
    if missing:
        report["problems"].insert(0, missing)
        report["machine_ok"], report["reason"] = False, missing
    report["wheels"] = [
        {
            **{key: wheel[key] for key in ("name", "version", "file", "size")},
            "tags": "-".join(".".join(wheel[kind]) for kind in ("pythons", "abis", "platforms")),
        }
        for wheel in report["wheels"]
    ]
    del report["pins"]
    module.exit_json(changed=False, **report)


if __name__ == "__main__":
    main()
