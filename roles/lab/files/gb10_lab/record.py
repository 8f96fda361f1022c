# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a running lab keeps what, and the record of what it is. The inventory reads nothing else."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import host


@dataclass
class Node:
    name: str
    index: int
    cluster: str
    address: str


@dataclass
class Lab:
    """One lab, as `up` planned it; written once, to lab.json."""

    name: str
    topology: str
    renderer: str
    wheelhouse: str
    model: str
    cache: str
    image: str
    interface: str
    network: str
    gateway: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return host.RUN / self.name

    @property
    def key(self) -> Path:
        return self.folder / "ssh" / "key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "ssh" / "known_hosts"

    @property
    def control_paths(self) -> Path:
        return self.folder / "ssh" / "control"

    @property
    def socket(self) -> Path:
        return self.folder / "control.sock"

    @property
    def alive(self) -> Path:
        """The supervisor holds this lock for as long as it lives."""
        return self.folder / "supervisor.lock"

    @property
    def failure(self) -> Path:
        """Why the supervisor could not start, for who waits for it."""
        return self.folder / "failure"

    @property
    def switch_room(self) -> Path:
        return self.folder / "switch-room"

    @property
    def layers(self) -> Path:
        """The nodes' own layers: on disk, since /run is often in memory and a release is gigabytes."""
        return Path(self.cache) / "nodes" / self.name

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise host.LabError(f"Lab {self.name} has no node {name!r}; it has {', '.join(node.name for node in self.nodes)}.")

    def settings(self) -> dict:
        """What a second `present` compares."""
        return {
            "lab_topology": self.topology, "lab_renderer": self.renderer, "lab_nodes": [node.name for node in self.nodes],
            "lab_engine": bool(self.wheelhouse),
        }

    def save(self) -> None:
        host.write(self.folder / "lab.json", json.dumps(asdict(self), indent=2) + "\n")


def load(name: str) -> Lab | None:
    try:
        data = json.loads((host.RUN / name / "lab.json").read_text())
    except FileNotFoundError:
        return None
    return Lab(**{**data, "nodes": [Node(**node) for node in data["nodes"]]})


def running(name: str) -> Lab | None:
    lab = load(name)
    return lab if lab and host.is_held(lab.alive) else None


def chosen_name() -> str:
    return os.environ.get("GB10_LAB") or "pair"
