#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_release
short_description: Have a release of vLLM, Ray and torch built from a wheelhouse and in use
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Builds a virtual environment below C(/opt/gb10/releases) from the wheels of a folder, each proven by its hash, without any other
    source. The installer is the C(uv) that the folder holds.
  - Proves as the user C(gb10) that torch, Ray, vLLM and vLLM's kernels load, and then lets C(/opt/gb10/current) point to the release.
  - A release is named by its toolchain, vLLM's version and the hashes of its wheels, so equal ones have equal names on all nodes.
    One that was not finished never counts. Going back to an earlier one is to give the earlier wheelhouse again, which builds nothing.
attributes:
  check_mode:
    description: Can run in check mode and predict changes, also when the wheelhouse, the folders and the user do not exist yet.
    support: full
  diff_mode:
    description: Shows which release C(/opt/gb10/current) leads to before and after.
    support: full
options:
  state:
    description: V(absent) removes the release named by O(key), or all of them.
    type: str
    choices: [present, absent]
    default: present
  wheelhouse:
    description: Folder on the node with the wheels and their C(requirements.txt). Required for O(state=present).
    type: path
  toolchain:
    description: Row of the toolchain table. Required for O(state=present).
    type: dict
    suboptions:
      name:
        description: Name of the row.
        type: str
        required: true
      vllm:
        description: Version of vLLM, local parts aside.
        type: str
      torch:
        description: Version of torch, local parts aside.
        type: str
      ray:
        description: Version of Ray, local parts aside.
        type: str
      nccl:
        description: Version of NCCL. Not compared when not given.
        type: str
      python:
        description: First two numbers of Python's version.
        type: str
      cuda:
        description: Version of CUDA. Written into the release's record.
        type: str
      device:
        description: What the ranks compute on.
        type: str
      architectures:
        description: What GPU code is compiled for.
        type: list
        elements: str
      nvfp4:
        description: Whether NVFP4 runs.
        type: bool
      environment:
        description: Environment of the engine, in which it is proven too.
        type: dict
        default: {}
      engine:
        description: Flags of the engine.
        type: dict
      source:
        description: Where the fit of the versions is read.
        type: str
      notes:
        description: What nobody has verified.
        type: str
  key:
    description: For O(state=absent), the release to remove, or V(all). The release in use is removed with V(all) only.
    type: str
seealso:
  - module: gb10.fleet.wheelhouse_info
"""

EXAMPLES = r"""
- name: Have the toolchain's release in use
  gb10.fleet.vllm_release:
    wheelhouse: /srv/wheelhouse
    toolchain: "{{ 'cuda-13.0' | gb10.fleet.toolchain }}"
  become: true

- name: Remove all releases
  gb10.fleet.vllm_release:
    state: absent
    key: all
  become: true
"""

RETURN = r"""
key:
  description: Name of the release, V(null) when check mode cannot know it because the wheelhouse is not there yet.
  returned: when O(state=present)
  type: str
  sample: cpu-0.32.0-24f655fd2407
path:
  description: Folder of the release.
  returned: when O(state=present)
  type: str
  sample: /opt/gb10/releases/cpu-0.32.0-24f655fd2407
release:
  description: The record in the release's C(release.json). In check mode V(null) when it would be built.
  returned: when O(state=present)
  type: dict
  sample: {key: cpu-0.32.0-24f655fd2407, toolchain: cpu, cuda: null, vllm: 0.32.0+cpu, torch: 2.13.0+cpu, ray: 2.60.0, nccl: null, python: 3.11.2}
previous:
  description: The release that was in use before, V(null) if there was none.
  returned: success
  type: str
  sample: cpu-0.32.0-5f0e7a1c9d22
steps:
  description: What was done, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [build, switch]
seconds:
  description: How long the parts of a build took.
  returned: when a release was built
  type: dict
  sample: {install: 17.2, compile: 0.1, proof: 9.8}
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
import typing as t
import zipfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._lock import LockedError, locked
from ansible_collections.gb10.fleet.plugins.module_utils._node_python import find_python
from ansible_collections.gb10.fleet.plugins.module_utils._run import run
from ansible_collections.gb10.fleet.plugins.module_utils._wheelhouse import base_version, inspect, release_key, without_bytecode

ROOT = "/opt/gb10"
USER = "gb10"
RECORD = "release.json"
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
LIMIT_SECONDS = 1800
PROOF_SECONDS = 300
# Room for what is not in the wheels: bytecode, folders, rounding up to blocks.
ROOM = 1.4
PROOF = """
import importlib.metadata, json, platform
import ray, torch, vllm, vllm._custom_ops
versions = {name: importlib.metadata.version(name) for name in ("vllm", "torch", "ray")}
nccl = sorted(found.version for found in importlib.metadata.distributions() if (found.metadata["Name"] or "").startswith("nvidia-nccl"))
print(json.dumps({
    **versions, "nccl": nccl[0] if nccl else None, "python": platform.python_version(),
    "kernels": hasattr(torch.ops._C, "silu_and_mul"),
}))
"""


class ReleaseError(Exception):
    """A sentence for the user with the cure."""


class Releases:
    """The releases of this node. Steps are decided first, and done unless in check mode."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.folder = os.path.join(ROOT, "releases")
        self.link = os.path.join(ROOT, "current")
        self.seconds: dict[str, float] = {}

    def current(self) -> str | None:
        """Name of the release in use."""
        try:
            return os.path.basename(os.readlink(self.link)) or None
        except OSError:
            return None

    def record(self, key: str) -> dict[str, t.Any] | None:
        """The record of a finished release, None for any other."""
        folder = os.path.join(self.folder, key)
        try:
            with open(os.path.join(folder, RECORD), encoding="utf-8") as stream:
                record = json.load(stream)
        except (OSError, ValueError):
            return None
        whole = isinstance(record, dict) and record.get("key") == key and os.access(os.path.join(folder, "bin/python"), os.X_OK)
        return record if whole else None

    def names(self) -> list[str]:
        """What lies in the folder of releases, unfinished ones and their tools too."""
        try:
            return sorted(os.listdir(self.folder))
        except OSError:
            return []

    def run(self, command: list[str], what: str, cure: str, limit: int = LIMIT_SECONDS, **options: t.Any) -> str:
        """Standard output of a command that must succeed within a time limit, in seconds."""
        environment = {**ENVIRONMENT, **options.pop("environment", {})}
        status, output, error = run(self.module, command, limit, environment, **options)
        if status:
            lines = (error or output).strip().splitlines() or ["it said nothing"]
            raise ReleaseError(f"{what}: {lines[-1].strip()}. {cure}")
        return output

    def present(self, wheelhouse: str, toolchain: dict[str, t.Any]) -> dict[str, t.Any]:
        """Have the release of a wheelhouse in use."""
        python, missing = find_python(self.module, toolchain["python"])
        if python is None:
            raise ReleaseError(missing)
        versions = {name: toolchain[name] for name in ("vllm", "torch", "ray")}
        report = inspect(wheelhouse, python.machine, versions)
        previous = self.current()
        if report["problems"]:
            if self.module.check_mode and not report["exists"]:
                return {"key": None, "path": None, "release": None, "previous": previous, "steps": ["build", "switch"]}
            raise ReleaseError(report["problems"][0])
        key = release_key(toolchain["name"], report["vllm"], report["key"])
        path = os.path.join(self.folder, key)
        record = self.record(key)
        steps = [] if record else ["build"]
        if previous != key:
            steps.append("switch")
        if steps and not self.module.check_mode:
            if not os.path.isdir(self.folder):
                raise ReleaseError(f"{self.folder} is missing. Run the role host on this node first.")
            with locked(self.folder, LIMIT_SECONDS):
                record = self.record(key) or self.build(key, wheelhouse, report, python, toolchain)
                if self.current() != key:
                    self.switch(key)
        return {"key": key, "path": path, "release": record, "previous": previous, "steps": steps}

    def build(self, key: str, wheelhouse: str, report: dict, python: t.Any, toolchain: dict[str, t.Any]) -> dict[str, t.Any]:
        """Make a release beside its place, prove it, and move it there as the last step."""
        partial = os.path.join(self.folder, f"{key}.partial")
        tools = os.path.join(self.folder, f"{key}.tools")
        for leftover in (partial, tools, os.path.join(self.folder, key)):
            remove(leftover)
        self.need_room(wheelhouse, report)
        os.umask(0o022)
        try:
            os.mkdir(tools, 0o700)
            with self.timed("install"):
                self.install(partial, tools, wheelhouse, report, python)
            with self.timed("compile"):
                self.compile(partial, python)
            with self.timed("proof"):
                record = self.prove(key, partial, toolchain)
            with open(os.path.join(partial, RECORD), "w", encoding="utf-8") as stream:
                stream.write(json.dumps(record, indent=2, sort_keys=True) + "\n")
            os.rename(partial, os.path.join(self.folder, key))
        finally:
            remove(tools)
            remove(partial)
        return record

    @contextlib.contextmanager
    def timed(self, part: str) -> t.Iterator[None]:
        """Note how long a part took, in seconds."""
        begin = time.monotonic()
        yield
        self.seconds[part] = round(time.monotonic() - begin, 1)

    def need_room(self, wheelhouse: str, report: dict) -> None:
        """Stop when the disk cannot hold the release."""
        pinned = {(pin["name"], pin["version"]) for pin in report["pins"]}
        size = 0
        for wheel in report["wheels"]:
            if (wheel["name"], wheel["version"]) in pinned:
                with zipfile.ZipFile(os.path.join(wheelhouse, wheel["file"])) as archive:
                    size += sum(member.file_size for member in archive.infolist())
        free = shutil.disk_usage(self.folder).free
        if free < size * ROOM:
            raise ReleaseError(
                f"{self.folder} has {free / 2**30:.1f} GiB free, and the release needs {size * ROOM / 2**30:.1f} GiB."
                " Free some space on this node; earlier releases in that folder are not needed to serve."
            )

    def install(self, partial: str, tools: str, wheelhouse: str, report: dict, python: t.Any) -> None:
        """Put the wheels into a new environment, by the wheelhouse's own uv."""
        installer = self.unpack_uv(tools, wheelhouse, report)
        environment = {
            "HOME": tools, "UV_CACHE_DIR": os.path.join(tools, "cache"), "UV_OFFLINE": "1", "UV_NO_CONFIG": "1", "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "hardlink",
        }
        where = f"The release cannot be built from spark_wheelhouse {wheelhouse}"
        cure = "Mend what it names, then run again; nothing of it is in use."
        self.run(
            [installer, "venv", "--quiet", "--relocatable", "--python", python.path, partial], where, cure, environment=environment
        )
        self.run(
            [installer, "pip", "install", "--quiet", "--python", os.path.join(partial, "bin/python"), "--no-deps", "--no-index",
             "--require-hashes", "--find-links", wheelhouse, "--requirement", os.path.join(wheelhouse, "requirements.txt")],
            where, cure, environment=environment,
        )

    def unpack_uv(self, tools: str, wheelhouse: str, report: dict) -> str:
        """The installer out of its wheel, whose hash is proven first since root runs it."""
        pin = next(pin for pin in report["pins"] if pin["name"] == "uv")
        wheel = next(wheel for wheel in report["wheels"] if (wheel["name"], wheel["version"]) == ("uv", pin["version"]))
        file = os.path.join(wheelhouse, wheel["file"])
        digest = hashlib.sha256()
        with open(file, "rb") as stream:
            for piece in iter(lambda: stream.read(1 << 20), b""):
                digest.update(piece)
        if f"sha256:{digest.hexdigest()}" not in pin["hashes"]:
            raise ReleaseError(f"{file} is not the file that its requirements.txt has the hash of. Fill the wheelhouse again.")
        installer = os.path.join(tools, "uv")
        with zipfile.ZipFile(file) as archive:
            member = next((name for name in archive.namelist() if name.endswith(".data/scripts/uv")), None)
            if member is None:
                raise ReleaseError(f"{file} holds no uv program. Take the wheel of uv for this platform.")
            with archive.open(member) as source, open(installer, "wb") as target:
                shutil.copyfileobj(source, target)
        os.chmod(installer, stat.S_IRWXU)
        return installer

    def compile(self, partial: str, python: t.Any) -> None:
        """Write the bytecode that did not come in wheels: the service user cannot, and would compile at every start."""
        sources = without_bytecode(os.path.join(partial, "lib"), python.cache_tag)
        if not sources:
            return
        # Sources that are meant for another Python fail to compile, which is no error: nobody imports them here.
        run(
            self.module,
            [python.path, "-I", "-S", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-i", "-"],
            LIMIT_SECONDS, ENVIRONMENT, data="\n".join(sources) + "\n",
        )

    def prove(self, key: str, partial: str, toolchain: dict[str, t.Any]) -> dict[str, t.Any]:
        """Load the engine as the service user, and compare what it says with the toolchain."""
        environment = {
            **{name: str(value) for name, value in (toolchain["environment"] or {}).items()},
            "HOME": "/nonexistent", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
        }
        output = self.run(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs",
             os.path.join(partial, "bin/python"), "-I", "-c", PROOF],
            f"The release {key} does not load as the user {USER}", "Mend the wheelhouse, or install the library that is named.",
            limit=PROOF_SECONDS, environment=environment, cwd="/",
        )
        try:
            proof = json.loads(output.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise ReleaseError(f"The release {key} loads, but says nothing of its versions: {output.strip()[-200:]}.") from None
        if not proof.pop("kernels"):
            raise ReleaseError(
                f"The kernels of vLLM {proof['vllm']} do not load on this node: a library is missing (libnuma1 for the CPU engine, CUDA's for"
                " others), or the wheels are made for another processor. Install the library, or name another spark_wheelhouse."
            )
        for name in ("vllm", "torch", "ray", "nccl"):
            wanted = toolchain[name]
            if wanted and base_version(proof[name] or "none") != base_version(wanted):
                raise ReleaseError(
                    f"The release {key} has {name} {proof[name] or 'not at all'}, and spark_toolchain {toolchain['name']} wants {wanted}."
                    " Name the wheelhouse that fits, or the toolchain that it was made for."
                )
        return {"key": key, "toolchain": toolchain["name"], "cuda": toolchain["cuda"], **proof}

    def switch(self, key: str) -> None:
        """Let `current` point to a release, with no moment in which it points nowhere."""
        if os.path.lexists(self.link) and not os.path.islink(self.link):
            raise ReleaseError(f"{self.link} is no link, so it is not ours. Move it away.")
        following = f"{self.link}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(following)
        os.symlink(os.path.join("releases", key), following)
        os.replace(following, self.link)

    def absent(self, key: str) -> dict[str, t.Any]:
        """Remove one release, or all with the link to them."""
        previous = self.current()
        if key == "all":
            gone = self.names()
            unlink = previous is not None
        else:
            if key == previous:
                raise ReleaseError(f"{key} is in use: give another release first, or remove all.")
            gone = [name for name in self.names() if name in (key, f"{key}.partial", f"{key}.tools")]
            unlink = False
        steps = (["unlink current"] if unlink else []) + [f"remove {name}" for name in gone]
        if steps and not self.module.check_mode:
            if unlink:
                os.unlink(self.link)
            for name in gone:
                remove(os.path.join(self.folder, name))
        return {"previous": previous, "steps": steps}


def remove(path: str) -> None:
    """Remove a folder, or a file, or nothing."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def toolchain_options() -> dict[str, dict]:
    """The fields of a row."""
    texts = ("vllm", "torch", "ray", "nccl", "python", "cuda", "device", "source", "notes")
    return {
        "name": {"type": "str", "required": True},
        **{name: {"type": "str"} for name in texts},
        "architectures": {"type": "list", "elements": "str"},
        "nvfp4": {"type": "bool"},
        "environment": {"type": "dict", "default": {}},
        "engine": {"type": "dict"},
    }


def main() -> None:
    """Build, switch or remove."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "wheelhouse": {"type": "path"},
            "toolchain": {"type": "dict", "options": toolchain_options()},
            "key": {"type": "str", "no_log": False},
        },
        required_if=[("state", "present", ("wheelhouse", "toolchain")), ("state", "absent", ("key",))],
        supports_check_mode=True,
    )
    releases = Releases(module)
    try:
        if module.params["state"] == "present":
            result = releases.present(module.params["wheelhouse"], module.params["toolchain"])
            after = result["key"] or "a release of the wheelhouse"
        else:
            result = releases.absent(module.params["key"])
            after = None if "unlink current" in result["steps"] else result["previous"]
    except (ReleaseError, LockedError) as error:
        module.fail_json(msg=f"vllm_release: {error}")
    except OSError as error:
        module.fail_json(
            msg=f"vllm_release: {error.filename or ROOT} cannot be handled: {error.strerror}. The task needs become: true and a disk with room;"
            " mend this on the node and run again."
        )
    diff = {state: f"{ROOT}/current -> {key}\n" if key else "" for state, key in (("before", result["previous"]), ("after", after))}
    if releases.seconds:
        result["seconds"] = releases.seconds
    module.exit_json(changed=bool(result["steps"]), diff=diff, **result)


if __name__ == "__main__":
    main()
