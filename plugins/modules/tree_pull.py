#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tree_pull
short_description: Install a folder of files that a manifest describes, from this node or from another
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Makes a folder hold exactly the files of a manifest, each proven by its SHA-256. They belong to root and everybody can read them.
  - The tree is built beside its place and put there when it is whole. A copy that was broken off is continued, and what the earlier tree
    has by content is linked from it, so that only the rest is copied.
  - Installs only where nothing was, or where it installed before, as O(record) tells.
attributes:
  check_mode:
    description: Can run in check mode and predict changes, also when folders are missing.
    support: full
  diff_mode:
    description: Shows digest and number of files before and after.
    support: full
options:
  path:
    description: Absolute path of the folder to install. Required with O(state=present).
    type: path
  source:
    description: Folder on this node, or the URL that M(gb10.fleet.tree_share) returned. Required with O(state=present) other than in check mode.
    type: str
  files:
    description: Files that the folder is to hold, as M(gb10.fleet.tree_manifest) returns them. Required with O(state=present).
    type: list
    elements: dict
    suboptions:
      path:
        description: Path below the folder.
        type: str
        required: true
      size:
        description: Size in bytes.
        type: int
        required: true
      sha256:
        description: SHA-256 of the content.
        type: str
        required: true
  record:
    description:
      - File that says what was installed, for root only. Its folder is made when it is missing.
      - With O(state=absent) it may be a folder. All records in it are meant then.
    type: path
    required: true
  state:
    description: V(absent) removes what the record tells, and the record.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: gb10.fleet.tree_manifest
  - module: gb10.fleet.tree_share
"""

EXAMPLES = r"""
- name: Install a model from the head
  gb10.fleet.tree_pull:
    path: /var/lib/gb10/models/tiny
    source: rsync://192.168.100.10:8730/tree/
    files: "{{ hostvars['spark-a'].model.files }}"
    record: /var/lib/gb10/manifests/tiny.json
  become: true

- name: Remove every model that was installed
  gb10.fleet.tree_pull:
    record: /var/lib/gb10/manifests
    state: absent
  become: true
"""

RETURN = r"""
digest:
  description: Digest of the manifest, which the folder has after the call.
  returned: when O(state=present)
  type: str
  sample: 4c5e2b0e16b52e6bbd3cd1a9e0d95a7ac9b1ce7b1f1ddc26a60ea0f1d5be92a1
bytes:
  description: Size of the files that were not there already and had to be copied. Of them less is transferred when a copy is continued.
  returned: when O(state=present)
  type: int
  sample: 524288000
received:
  description: Bytes that were really transferred. Null in check mode.
  returned: when O(state=present)
  type: int
  sample: 524416131
seconds:
  description: How long the transfer took. Null in check mode.
  returned: when O(state=present)
  type: float
  sample: 1.21
gigabytes_per_second:
  description: RV(received) in gigabytes by RV(seconds). Null when nothing was transferred.
  returned: when O(state=present)
  type: float
  sample: 0.433
removed:
  description: Folders that were removed, or would be in check mode.
  returned: when O(state=absent)
  type: list
  elements: str
  sample: [/var/lib/gb10/models/tiny]
"""

import os
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._lock import LockedError, locked
from ansible_collections.gb10.fleet.plugins.module_utils._run import run
from ansible_collections.gb10.fleet.plugins.module_utils._tree import (
    Plan,
    check_paths,
    copy_file,
    drop_cached,
    file_digest,
    free_bytes,
    installed_state,
    make_tree_plain,
    old_path,
    partial_path,
    prepare,
    pull_plan,
    read_record,
    remove,
    scan,
    stamp,
    take_place,
    tree_digest,
    write_record,
)
from ansible_collections.gb10.fleet.plugins.module_utils._tree_share import fetch_command, received_bytes

ATTEMPTS = 2
# rsync itself gives up on a share that is silent; this ends what trickles on for a day.
LIMIT_SECONDS = 86400
LOCK_SECONDS = 1800


class Pull:
    """One tree, from what is there to what is wanted."""

    def __init__(self, module: AnsibleModule, locks: tuple[int, ...] = ()) -> None:
        self.module = module
        self.locks = locks
        self.record_path: str = module.params["record"]
        self.path: str = os.path.normpath(module.params["path"])
        self.partial = partial_path(self.path)
        self.source: str = module.params["source"] or ""
        self.wanted = sorted(module.params["files"], key=lambda file: file["path"])
        check_paths(self.wanted)
        self.digest = tree_digest(self.wanted)
        self.record = read_record(self.record_path)
        self.seen: dict[str, list[t.Any]] = self.record["seen"] if self.record else {}

    def write_record(self, digest: str | None) -> None:
        """Record that what is at the path is ours and, by its digest, that it is whole."""
        files = self.wanted if digest else []
        write_record(self.record_path, {
            "path": self.path, "digest": digest, "bytes": sum(file["size"] for file in files), "files": files, "seen": self.seen,
        })

    def copy(self, files: t.Sequence[dict[str, t.Any]]) -> int:
        """Copy files from a folder of this node; returns the bytes."""
        root = os.path.realpath(self.source)
        for file in files:
            source, target = os.path.join(root, file["path"]), os.path.join(self.partial, file["path"])
            remove(target)
            before = os.stat(source)
            total = copy_file(source, target)
            after = os.stat(source)
            os.utime(target, ns=(after.st_atime_ns, after.st_mtime_ns))
            if total != file["sha256"] or stamp(before) != stamp(after):
                self.module.fail_json(msg=f"{source} changed while it was copied: run again when nobody writes to it.")
            self.seen[source] = [*stamp(after), total]
        return sum(file["size"] for file in files)

    def fetch(self, files: t.Sequence[dict[str, t.Any]]) -> int:
        """Fetch files from a share; returns the bytes that crossed the wire."""
        rsync = self.module.get_bin_path("rsync")
        if rsync is None:
            self.module.fail_json(msg="There is no rsync on this node: run the role host, which installs it (variable host_packages).")
        command = fetch_command(rsync, self.source, self.partial)
        names = "\0".join(file["path"] for file in files) + "\0"
        status, output, error = run(self.module, command, LIMIT_SECONDS, data=names, binary_data=True, pass_fds=self.locks)
        if status:
            said = (error or output).strip().replace("\n", "; ") or f"rsync ended with {status}"
            self.module.fail_json(
                msg=f"{self.path} was not fetched from {self.source}: {said}. Run again, which goes on from here; if it fails again, look at "
                "the rail to the head (role fabric) and at journalctl -u gb10-share on the head.",
                cmd=command, rc=status, stdout=output, stderr=error,
            )
        return received_bytes(output)

    def transfer(self, files: t.Sequence[dict[str, t.Any]]) -> tuple[int, float]:
        """Bring files into the half-built tree and prove them; returns bytes transferred and seconds that took."""
        received, seconds, rest = 0, 0.0, list(files)
        for _attempt in range(ATTEMPTS):
            begin = time.monotonic()
            if rest:
                received += self.fetch(rest) if self.source.startswith("rsync://") else self.copy(rest)
            seconds += time.monotonic() - begin
            if not self.source.startswith("rsync://"):
                return received, seconds
            # Only what has the right content by our own reading counts, whatever the transfer said.
            rest = [file for file in rest if file_digest(os.path.join(self.partial, file["path"])) != file["sha256"]]
            for file in rest:
                remove(os.path.join(self.partial, file["path"]))
            if not rest:
                return received, seconds
        self.module.fail_json(
            msg=f"{', '.join(file['path'] for file in rest)} arrived with another content than the head's manifest tells: run again, which "
            "reads the model on the head anew; if it fails again, test the memory and disk of both nodes.",
        )

    def check_space(self, plan: Plan) -> None:
        """Refuse before the disk is full."""
        there = 0
        for file in plan.fetch:
            target = os.path.join(self.partial, file["path"])
            there += os.lstat(target).st_size if os.path.lexists(target) else 0
        needed = sum(file["size"] for file in plan.fetch) - there
        free = free_bytes(self.path)
        if needed > free:
            self.module.fail_json(
                msg=f"{self.path} needs {needed / 1e9:.1f} GB more and its file system has {free / 1e9:.1f} GB free: "
                "remove what is not needed on this node.",
            )

    def install(self) -> dict[str, t.Any]:
        """Do what is missing; returns the module's result."""
        state = installed_state(self.path, self.record, self.seen)
        if state["foreign"]:
            self.module.fail_json(
                msg=f"{self.path} (or the same with .partial or .old) is there and was not installed by this collection: move it away.",
            )
        right = state["digest"] == self.digest
        changed = not (right and state["sound"])
        result: dict[str, t.Any] = {
            "changed": changed, "digest": self.digest, "bytes": 0, "received": None, "seconds": None, "gigabytes_per_second": None,
            "diff": {
                "before": f"{self.path}: digest {state['digest']}\n" if state["exists"] else "",
                "after": f"{self.path}: digest {self.digest}, {len(self.wanted)} files\n",
            },
        }
        plan = Plan([], [], [])
        if not right:
            plan = pull_plan(self.wanted, scan(self.partial, self.seen)["files"], scan(self.path, self.seen)["files"])
            self.check_space(plan)
        result["bytes"] = sum(file["size"] for file in plan.fetch)
        if self.module.check_mode or not changed:
            return result
        if not right:
            self.build(plan, result)
        else:
            remove(self.partial)
            remove(old_path(self.path))
        make_tree_plain(self.path)
        self.remember()
        self.write_record(self.digest)
        return result

    def remember(self) -> None:
        """Take the sums of the installed files, which are proven by now, as seen."""
        scan(self.partial, self.seen)
        root = os.path.realpath(self.path)
        for file in self.wanted:
            path = os.path.join(root, file["path"])
            self.seen[path] = [*stamp(os.stat(path)), file["sha256"]]

    def build(self, plan: Plan, result: dict[str, t.Any]) -> None:
        """Build the tree beside its place, prove it and put it there."""
        # First of all, so that what follows is known as ours whenever we are stopped.
        self.write_record(None)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        prepare(self.partial, self.path, plan)
        received, seconds = self.transfer(plan.fetch)
        result.update(received=received, seconds=round(seconds, 3))
        if received and seconds:
            result["gigabytes_per_second"] = round(received / seconds / 1e9, 3)
        make_tree_plain(self.partial)
        drop_cached(os.path.join(self.partial, file["path"]) for file in plan.fetch)
        take_place(self.path)


def install(module: AnsibleModule) -> dict[str, t.Any]:
    """Install what is missing; returns the module's result."""
    if module.check_mode:
        return Pull(module).install()
    # Of a run that was killed the copying may go on: it ends first, since its rsync has a share in the lock.
    folder = os.path.dirname(module.params["record"])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with locked(folder, LOCK_SECONDS) as handle:
        return Pull(module, (handle,)).install()


def uninstall(module: AnsibleModule) -> dict[str, t.Any]:
    """Remove what is recorded; returns the module's result."""
    place: str = module.params["record"]
    paths = [place]
    if os.path.isdir(place):
        paths = [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith(".json")]
    removed = []
    changed = os.path.isdir(place)
    for path in paths:
        record = read_record(path)
        if record is None:
            continue
        changed = True
        removed.append(record["path"])
        if not module.check_mode:
            for tree in (record["path"], partial_path(record["path"]), old_path(record["path"])):
                remove(tree)
            os.unlink(path)
    if os.path.isdir(place) and not module.check_mode:
        remove(place)
    before = "".join(f"{path}\n" for path in removed)
    return {"changed": changed, "removed": removed, "diff": {"before": before, "after": ""}}


def main() -> None:
    """Install or remove."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path"},
            "source": {"type": "str"},
            "files": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "path": {"type": "str", "required": True},
                    "size": {"type": "int", "required": True},
                    "sha256": {"type": "str", "required": True},
                },
            },
            "record": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ("path", "files"))],
        supports_check_mode=True,
    )
    result: dict[str, t.Any] = {}
    try:
        if module.params["state"] == "absent":
            result = uninstall(module)
        else:
            if not module.params["source"] and not module.check_mode:
                module.fail_json(msg="source is missing: name the folder, or the URL that tree_share returned.")
            result = install(module)
    except (ValueError, LockedError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be written or read: {error.strerror}. Run as root; the role host makes the folders.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
