# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA toolkits, NCCL libraries and releases on a node, and what of the kind is first on its PATH. Files in, data out."""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._apt import find_conflicts, read_repositories
from ansible_collections.gb10.fleet.plugins.module_utils._elf import read_build_id
from ansible_collections.gb10.fleet.plugins.module_utils._environment import login_path, read_environment
from ansible_collections.gb10.fleet.plugins.module_utils._files import (
    file_status, follow_links, is_directory, is_file, link_target, link_target_name, list_names, read_bytes, read_text,
)

PROBES: dict[str, tuple[str, ...]] = {}
RELEASES = "opt/gb10/releases"
CURRENT = "opt/gb10/current"
WANTS = "etc/systemd/system/multi-user.target.wants"
_NVCC = re.compile(r"release [\d.]+, V(\d+(?:\.\d+)+)")
_PYTHON = re.compile(r"^python3\.\d+$")
_TOOLKIT = re.compile(r"^cuda(-[\d.]+)?$")
_NCCL = re.compile(r"^libnccl\.so(?:\.(\d+(?:\.\d+)*))?$")
_NCCL_DEFINE = re.compile(r"^#define\s+NCCL_(MAJOR|MINOR|PATCH)\s+(\d+)", re.MULTILINE)
_COMMANDS = {"vllm": "vllm", "ray": "ray", "torchrun": "torch", "nvcc": "nvcc"}
_LONGEST_EVIDENCE = 200

Note = t.Callable[[str, str, str], None]


def parse_nvcc(text: str) -> str | None:
    """Version of the compiler from `nvcc --version`."""
    found = _NVCC.search(text)
    return found.group(1) if found else None


def read_json_object(text: str | None) -> dict[str, t.Any] | None:
    """A JSON object, None for no text. Raises ValueError for text that is anything else."""
    if text is None:
        return None
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def _read_noted(root: str, path: str, note: Note) -> dict[str, t.Any]:
    text = read_text(root, path)
    try:
        return read_json_object(text) or {}
    except ValueError:
        note(f"/{path}", "not_understood", (text or "")[:_LONGEST_EVIDENCE])
        return {}


def _text(value: t.Any) -> str | None:
    return value if isinstance(value, str) and value else None


def read_toolkits(root: str, note: Note) -> list[dict[str, t.Any]]:
    """CUDA toolkits under /usr/local, each once though links lead to it: path, version, and nvcc's version if it has one.

    `compiler` is None and `has_compiler` true where there is an nvcc whose version no file tells.
    """
    toolkits: dict[str, dict[str, t.Any]] = {}
    for name in list_names(root, "usr/local"):
        path = follow_links(root, f"usr/local/{name}") if _TOOLKIT.match(name) else ""
        if not path or path in toolkits or not is_directory(root, path):
            continue
        versions = _read_noted(root, f"{path}/version.json", note)
        has_compiler = is_file(root, path, "bin/nvcc")
        toolkits[path] = {
            "path": f"/{path}",
            "version": _component(versions, "cuda"),
            "compiler": _component(versions, "cuda_nvcc") if has_compiler else None,
            "has_compiler": has_compiler,
        }
    return sorted(toolkits.values(), key=lambda toolkit: toolkit["path"])


def _component(versions: dict[str, t.Any], name: str) -> str | None:
    component = versions.get(name)
    return _text(component.get("version")) if isinstance(component, dict) else None


def more_probes(root: str) -> dict[str, tuple[str, ...]]:
    """Probes that the node's files ask for: the compiler of a toolkit without a file of versions."""
    toolkits = read_toolkits(root, lambda source, reason, evidence: None)
    if any(toolkit["compiler"] for toolkit in toolkits):
        return {}
    silent = next((toolkit["path"] for toolkit in reversed(toolkits) if toolkit["has_compiler"]), None)
    return {"nvcc": (f"{silent}/bin/nvcc", "--version")} if silent else {}


def read_distributions(root: str, *folders: str) -> dict[str, str]:
    """Version of each distribution installed in the folders, the first one's for several, by lower-case names with underscores."""
    versions: dict[str, str] = {}
    for folder in folders:
        for name in list_names(root, folder):
            if name.endswith(".dist-info"):
                distribution, _dash, version = name[: -len(".dist-info")].rpartition("-")
                if distribution and version:
                    versions.setdefault(distribution.lower().replace(".", "_").replace("-", "_"), version)
    return versions


def site_folders(root: str, prefix: str) -> list[str]:
    """Folders of Python packages below a prefix such as usr/local or a virtual environment's."""
    found = [f"{prefix}/lib/python3/dist-packages"]
    for name in list_names(root, prefix, "lib"):
        if _PYTHON.match(name):
            found += [f"{prefix}/lib/{name}/site-packages", f"{prefix}/lib/{name}/dist-packages"]
    return [folder for folder in found if is_directory(root, folder)]


def _nccl_distribution(versions: t.Mapping[str, str]) -> str | None:
    return next((version for name, version in versions.items() if re.match(r"^nvidia_nccl_cu\d+$", name)), None)


def describe_release(root: str, key: str, note: Note) -> dict[str, t.Any]:
    """Versions of a release, of its installed packages and for the rest of what was recorded when it was built."""
    folder = f"{RELEASES}/{key}"
    recorded = {name: _text(value) for name, value in _read_noted(root, f"{folder}/release.json", note).items()}
    python = next((name for name in list_names(root, folder, "lib") if _PYTHON.match(name)), None)
    installed = read_distributions(root, f"{folder}/lib/{python}/site-packages") if python else {}
    return {
        "key": key,
        "vllm": installed.get("vllm") or recorded.get("vllm"),
        "torch": installed.get("torch") or recorded.get("torch"),
        "ray": installed.get("ray") or recorded.get("ray"),
        "nccl": _nccl_distribution(installed) or recorded.get("nccl"),
        "python": _release_python(root, folder) or (python[len("python"):] if python else None) or recorded.get("python"),
    }


def _release_python(root: str, folder: str) -> str | None:
    for line in (read_text(root, folder, "pyvenv.cfg") or "").splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() in ("version", "version_info"):
            found = re.match(r"\d+\.\d+(?:\.\d+)?", value.strip())
            return found.group(0) if found else None
    return None


def read_releases(root: str, note: Note) -> list[dict[str, t.Any]]:
    """Releases on the node; one that is being built or was broken off is none."""
    names = [name for name in list_names(root, RELEASES) if not name.endswith(".partial") and is_directory(root, RELEASES, name)]
    return [describe_release(root, name, note) for name in names]


def current_key(root: str) -> str | None:
    """Key of the release that /opt/gb10/current leads to, None where it leads nowhere."""
    return link_target_name(root, CURRENT) if is_directory(root, follow_links(root, CURRENT)) else None


def current_path(root: str) -> str | None:
    """Where /opt/gb10/current points, as written in the link."""
    return link_target(root, CURRENT)


def read_units(root: str) -> list[str]:
    """Units of ours that start at boot, by their links below multi-user.target, in alphabetical order."""
    return sorted(name for name in list_names(root, WANTS) if name.startswith("gb10-"))


def _nccl_folders(root: str, toolkits: t.Sequence[dict[str, t.Any]], home: str | None) -> list[str]:
    folders = [f"usr/lib/{name}" for name in list_names(root, "usr/lib") if name.endswith("-linux-gnu")]
    folders += ["usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64"]
    folders += [f"usr/local/{name}/lib" for name in list_names(root, "usr/local") if name.startswith("nccl")]
    for toolkit in toolkits:
        base = toolkit["path"].strip("/")
        folders += [f"{base}/lib64", *(f"{base}/targets/{name}/lib" for name in list_names(root, base, "targets"))]
    sites = site_folders(root, "usr") + site_folders(root, "usr/local")
    if home:
        folder = home.strip("/")
        folders += [f"{folder}/nccl/build/lib"]
        sites += site_folders(root, f"{folder}/.local")
    for name in list_names(root, RELEASES):
        sites += site_folders(root, f"{RELEASES}/{name}")
    return folders + [f"{site}/nvidia/nccl/lib" for site in sites]


def _nccl_version(root: str, path: str) -> str | None:
    """By the file's own name, else by the header or the distribution beside it: the file itself tells only who loads it."""
    folder, _slash, name = path.rpartition("/")
    found = _NCCL.match(name)
    if found and found.group(1) and "." in found.group(1):
        return found.group(1)
    defined = dict(_NCCL_DEFINE.findall(read_text(root, folder, "../include/nccl.h", limit=1 << 16) or ""))
    if len(defined) == 3:
        return ".".join(defined[part] for part in ("MAJOR", "MINOR", "PATCH"))
    if folder.endswith("/nvidia/nccl/lib"):
        return _nccl_distribution(read_distributions(root, folder[: -len("/nvidia/nccl/lib")]))
    return None


def read_nccl_libraries(root: str, toolkits: t.Sequence[dict[str, t.Any]], home: str | None) -> list[dict[str, t.Any]]:
    """NCCL libraries of the system, of CUDA, of releases and of the user's own build, each once though links lead to it."""
    found: dict[str, dict[str, t.Any]] = {}
    for folder in _nccl_folders(root, toolkits, home):
        for name in list_names(root, folder):
            path = follow_links(root, f"{folder}/{name}") if _NCCL.match(name) else ""
            if not path or path in found or not is_file(root, path):
                continue
            status = file_status(root, path)
            found[path] = {
                "path": f"/{path}",
                "size_bytes": status.st_size if status else None,
                "version": _nccl_version(root, path),
                "build_id": read_build_id(lambda offset, size, path=path: read_bytes(root, path, offset=offset, size=size)),
            }
    return [found[path] for path in sorted(found)]


def _command_version(root: str, path: str, what: str) -> str | None:
    """Version of a command by the packages of its Python, which its first line names, or by those beside it."""
    if what == "nvcc":
        return None
    first = (read_bytes(root, path, size=256) or b"").split(b"\n")[0].decode("utf-8", "replace")
    interpreter = re.match(r"^#!\s*/(\S+)/bin/python[\d.]*(?:\s|$)", first)
    prefixes = [interpreter.group(1)] if interpreter else []
    prefixes.append(path.rpartition("/")[0].rpartition("/")[0])
    for prefix in prefixes:
        version = read_distributions(root, *site_folders(root, prefix)).get(what) if prefix else None
        if version:
            return version
    return None


def find_strays(root: str, home: str | None) -> list[dict[str, t.Any]]:
    """vLLM, Ray, torch and nvcc that a login finds and that no release or CUDA toolkit brought: {what, path, version, where}."""
    strays = []
    folders = [folder.strip("/") for folder in login_path(root, home)]
    for command, what in _COMMANDS.items():
        place = next((f"{folder}/{command}" for folder in folders if is_file(root, folder, command)), None)
        real = follow_links(root, place) if place else ""
        if place and not real.startswith("opt/gb10/") and not (what == "nvcc" and re.match(r"^usr/local/cuda[-/]", real)):
            strays.append({"what": what, "path": f"/{place}", "version": _command_version(root, real, what), "where": "path"})
    sites = site_folders(root, "usr") + site_folders(root, "usr/local")
    if home:
        sites += site_folders(root, f"{home.strip('/')}/.local")
    for site in sites:
        versions = read_distributions(root, site)
        strays += [
            {"what": what, "path": f"/{site}/{what}", "version": versions[what], "where": "site"} for what in ("vllm", "ray", "torch") if what in versions
        ]
    return strays


def read_toolchain(root: str, answers: t.Mapping[str, t.Any], python: str, home: str | None, note: Note) -> dict[str, t.Any]:
    """Facts of the subset toolchain.

    Args:
        root: root directory of the node.
        answers: answers to PROBES and more_probes().
        python: version of the Python that runs this.
        home: home directory of the user who logs in, whose start-up files count.
        note: told what was not understood.
    """
    toolkits = read_toolkits(root, note)
    nvcc = next((toolkit["compiler"] for toolkit in reversed(toolkits) if toolkit["compiler"]), None)
    answer = answers.get("nvcc")
    if nvcc is None and answer is not None:
        nvcc = parse_nvcc(answer.output)
        if nvcc is None and answer.status == 0:
            note("nvcc --version", "not_understood", answer.output.strip()[:_LONGEST_EVIDENCE])
    default = follow_links(root, "usr/local/cuda")
    releases = read_releases(root, note)
    key = current_key(root)
    repositories = read_repositories(root, note)
    return {
        "python": python,
        "cuda": [{"path": toolkit["path"], "version": toolkit["version"]} for toolkit in toolkits],
        "default_cuda": f"/{default}" if is_directory(root, default) else None,
        "nvcc": nvcc,
        "release": next((release for release in releases if release["key"] == key), None),
        "current": current_path(root),
        "units": read_units(root),
        "nccl_libraries": read_nccl_libraries(root, toolkits, home),
        "releases": releases,
        "strays": find_strays(root, home),
        "environment": read_environment(root, home, note),
        "repositories": repositories,
        "repository_conflicts": find_conflicts(repositories),
    }
