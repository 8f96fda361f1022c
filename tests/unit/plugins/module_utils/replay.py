# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gathers the facts of a recorded node: what reads a file or asks a tool is answered from the recording."""

from __future__ import annotations

import base64
import json
import os
import stat
import types
from pathlib import Path

from ansible_collections.gb10.fleet.plugins.module_utils import _dpkg, _files, _gather

KINDS = {"directory": stat.S_IFDIR, "file": stat.S_IFREG, "other": stat.S_IFIFO}
PARTS = ("machine", "files", "commands", "facts")


def load(folder):
    """The parts of a recorded folder."""
    return {part: json.loads(Path(folder, f"{part}.json").read_text(encoding="utf-8")) for part in PARTS}


class ReplayedMachine(_gather.Machine):
    """A machine that tells what another one told."""

    def __init__(self, told):
        self.told = told

    def uname(self):
        return types.SimpleNamespace(**self.told["uname"])

    def cpus(self):
        return self.told["cpus"]

    def python(self):
        return self.told["python"]

    def synchronized(self):
        return self.told["synchronized"]

    def now(self):
        return self.told["now"]

    def space(self, path):
        return self.told["space"].get(path)

    def variables(self):
        return self.told["variables"]


class Replay:
    """A recorded node in the place of this one."""

    def __init__(self, recording, monkeypatch):
        self.recording = recording
        self.rows = recording["files"]
        self.answers = {tuple(command["argv"]): (command["status"], command["output"], command["error"]) for command in recording["commands"]}
        self.missed = []
        monkeypatch.setattr(_files, "_read_whole", self.read_whole)
        monkeypatch.setattr(_files, "_read_part", self.read_part)
        monkeypatch.setattr(_files, "_list", lambda path: self.row(path).get("names", []))
        monkeypatch.setattr(_files, "_read_link", lambda path: self.row(path).get("link"))
        monkeypatch.setattr(_files, "_status", self.status)
        monkeypatch.setattr(_files, "_is_denied", lambda path: self.row(path).get("denied", False))
        monkeypatch.setattr(_gather, "run", self.run)
        _dpkg._parsed.cache_clear()

    def row(self, path):
        return self.rows.get(path, {})

    def read_whole(self, path, limit):
        text = self.row(path).get("text")
        return None if text is None else text.encode()[:limit]

    def read_part(self, path, offset, size):
        written = self.row(path).get("written")
        if written is not None:
            return written.encode()[offset:offset + size]
        content = self.row(path).get("bytes", {}).get(str(offset))
        return None if content is None else base64.b64decode(content)[:size]

    def status(self, path):
        told = self.row(path).get("status")
        return None if told is None else os.stat_result((KINDS[told["kind"]], told["inode"], told["device"], 1, 0, 0, told["size"], 0, 0, 0))

    def run(self, module, argv, limit, **options):
        if tuple(argv) not in self.answers:
            self.missed.append(list(argv))
        return self.answers.get(tuple(argv), (127, "", f"{argv[0]} is not on this node"))

    def gather(self, **options):
        """The facts that come of the recording."""
        gatherer = _gather.Gatherer(None, "/", machine=ReplayedMachine(self.recording["machine"]), **options)
        return gatherer.gather(_gather.SUBSETS)
