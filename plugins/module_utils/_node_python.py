# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python of this node that a release is built with, and what it says of itself."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._run import run
from ansible_collections.gb10.fleet.plugins.module_utils._wheelhouse import Machine, parse_version

ASK = (
    "import json, os, platform, sys; print(json.dumps(["
    "list(sys.version_info[:2]), platform.machine(), os.confstr('CS_GNU_LIBC_VERSION'), sys.implementation.cache_tag]))"
)


class NodePython(t.NamedTuple):
    """A Python, what wheels for it must be like, and how it names its bytecode."""

    path: str
    machine: Machine
    cache_tag: str


def parse_self(path: str, text: str) -> NodePython:
    """What a Python printed when it was asked with ASK.

    Raises:
        ValueError: it printed something else.
    """
    version, architecture, libc, cache_tag = json.loads(text)
    return NodePython(path, Machine((version[0], version[1]), architecture, parse_version(libc)), cache_tag)


def find_python(module: t.Any, wanted: str | None) -> tuple[NodePython | None, str | None]:
    """The node's Python of a version.

    Args:
        module: an AnsibleModule.
        wanted: the first two numbers of the version; whatever python3 is when None.

    Returns:
        The Python and None, or None and a sentence that says what to do about it.
    """
    seen = []
    for name in ([f"python{wanted}"] if wanted else []) + ["python3"]:
        path = module.get_bin_path(name)
        if not path:
            continue
        status, output, dummy = run(module, [path, "-I", "-c", ASK])
        try:
            found = parse_self(path, output) if status == 0 else None
        except (ValueError, TypeError, IndexError):
            found = None
        if found is None:
            continue
        if not wanted or found.machine.python == parse_version(wanted):
            return found, None
        seen.append(f"{path} is {found.machine.python[0]}.{found.machine.python[1]}")
    there = "; ".join(seen) or "it has none"
    return None, (
        f"The toolchain needs Python {wanted or 3} on this node, and {there}."
        " Install it, or set spark_toolchain to a row for the Python that is there."
    )
