# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA toolkits and the release that a node runs, read from names of files and small JSON files."""

from __future__ import annotations

import json
import os
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._files import link_target_name, list_names, read_text

CURRENT = "opt/gb10/current"
WANTS = "etc/systemd/system/multi-user.target.wants"
_NVCC = re.compile(r"release [\d.]+, V(\d+(?:\.\d+)+)")
_DISTRIBUTION = re.compile(r"^(.+?)-([^-]+)\.dist-info$")


def parse_nvcc(text: str) -> str | None:
    """Version of the compiler from `nvcc --version`."""
    found = _NVCC.search(text)
    return found.group(1) if found else None


def read_json_object(text: str | None) -> dict[str, t.Any] | None:
    """A JSON object, None for no text. Raises ValueError for text that is anything else."""
    if text is None:
        return None
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def read_cuda(root: str, warn: t.Callable[[str], None]) -> list[dict[str, t.Any]]:
    """CUDA toolkits under /usr/local, each once though links lead to it: path, version, and nvcc's version if it has one.

    `compiler` is None and `has_compiler` true where there is an nvcc whose version no file tells.
    """
    base = os.path.join(root, "usr/local")
    toolkits: dict[str, dict[str, t.Any]] = {}
    for name in list_names(base):
        path = os.path.join(base, name)
        if not re.match(r"^cuda(-[\d.]+)?$", name) or not os.path.isdir(path):
            continue
        real = os.path.realpath(path)
        if real in toolkits:
            continue
        try:
            versions = read_json_object(read_text(path, "version.json")) or {}
        except ValueError:
            versions = {}
            warn(f"Cannot read {path}/version.json as JSON, so the version of this CUDA toolkit is unknown.")
        has_compiler = os.path.exists(os.path.join(path, "bin/nvcc"))
        toolkits[real] = {
            "path": "/" + os.path.relpath(real, os.path.realpath(root)),
            "version": _component(versions, "cuda"),
            "compiler": _component(versions, "cuda_nvcc") if has_compiler else None,
            "has_compiler": has_compiler,
        }
    return sorted(toolkits.values(), key=lambda toolkit: toolkit["path"])


def _component(versions: dict[str, t.Any], name: str) -> str | None:
    component = versions.get(name)
    return component.get("version") if isinstance(component, dict) else None


def read_distributions(site_packages: str) -> dict[str, str]:
    """Version of each installed distribution, by its lower-case name with underscores."""
    versions = {}
    for name in list_names(site_packages):
        found = _DISTRIBUTION.match(name)
        if found:
            versions[re.sub(r"[-.]+", "_", found.group(1)).lower()] = found.group(2)
    return versions


def read_release(root: str, warn: t.Callable[[str], None]) -> dict[str, t.Any] | None:
    """The release that /opt/gb10/current leads to, or None where there is none."""
    current = os.path.join(root, CURRENT)
    key = link_target_name(current)
    if key is None or not os.path.isdir(current):
        return None
    try:
        recorded = read_json_object(read_text(current, "release.json")) or {}
    except ValueError:
        recorded = {}
        warn(f"Cannot read /{CURRENT}/release.json as JSON; versions come from the installed packages alone.")
    library = os.path.join(current, "lib")
    python = next((name for name in list_names(library) if re.match(r"^python3\.\d+$", name)), None)
    installed = read_distributions(os.path.join(library, python, "site-packages")) if python else {}
    nccl = next((version for name, version in installed.items() if re.match(r"^nvidia_nccl_cu\d+$", name)), None)
    return {
        "key": key,
        "vllm": installed.get("vllm") or recorded.get("vllm"),
        "torch": installed.get("torch") or recorded.get("torch"),
        "ray": installed.get("ray") or recorded.get("ray"),
        "nccl": nccl or recorded.get("nccl"),
        "python": _release_python(current) or (python[len("python"):] if python else None) or recorded.get("python"),
    }


def _release_python(current: str) -> str | None:
    for line in (read_text(current, "pyvenv.cfg") or "").splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() in ("version", "version_info"):
            found = re.match(r"\d+\.\d+(?:\.\d+)?", value.strip())
            return found.group(0) if found else None
    return None


def read_units(root: str) -> list[str]:
    """Units of ours that start at boot, by their links below multi-user.target, in alphabetical order."""
    return sorted(name for name in list_names(os.path.join(root, WANTS)) if name.startswith("gb10-"))


def current_path(root: str) -> str | None:
    """Where /opt/gb10/current points, as written in the link."""
    try:
        return os.readlink(os.path.join(root, CURRENT))
    except OSError:
        return None
