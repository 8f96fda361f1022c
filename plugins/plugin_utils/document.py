# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON document of a node: what was seen on it and what was found, of one shape and bounded size. Run on the controller."""

from __future__ import annotations

import hashlib
import json
import math
import re
import typing as t
from pathlib import Path

import yaml
from ansible_collections.gb10.fleet.plugins.plugin_utils import report

# Raised when a field goes or changes its meaning; docs/schema/node-document.json says what this number stands for.
SCHEMA_VERSION = 1
LIMIT = 256 * 1024
FINDINGS_LIMIT = 128 * 1024
SUBSETS = ("gpu", "rdma", "platform", "kernel", "memory", "toolchain", "services", "proven", "unread")
DEPTH = 16
CUTS = 100
# What a value may have: items of a list or mapping, characters of a text. The first that fits is taken.
MEASURES = ((100_000, 100_000), (500, 4000), (200, 2000), (100, 1000), (50, 500), (20, 300), (10, 200), (5, 100), (2, 50))
SECRET_NAME = re.compile(r"(?i)(password|passwd|secret|token|api_?key|private_?key)$")
COLLECTION = Path(__file__).parents[2]


def collector() -> dict[str, str]:
    """Name and version of this collection, from its manifest, or from galaxy.yml in a checkout."""
    manifest = COLLECTION / "MANIFEST.json"
    if manifest.exists():
        version = json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"]
    else:
        version = yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    return {"name": "gb10.fleet", "version": str(version)}


def clean(value: t.Any, depth: int = DEPTH) -> t.Any:
    """Any value as plain JSON: texts, numbers, booleans, None, lists and mappings with texts as keys.

    Numbers that JSON has not (NaN, infinity) or that readers cannot hold (beyond 64 bits), and what lies deeper than `depth`,
    become None. So does the value under a name that ends in password, secret, token or key of an API, whatever it is.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (str, bytes)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return report.plain(text, MEASURES[0][1])
    if isinstance(value, t.Mapping):
        if depth == 0:
            return None
        cleaned = {}
        for key, item in value.items():
            name = report.plain(key, 200)
            cleaned[name] = None if SECRET_NAME.search(name) else clean(item, depth - 1)
        name, content = cleaned.get("name"), cleaned.get("value")
        if isinstance(name, str) and content is not None and SECRET_NAME.search(name):
            cleaned["value"] = None
        return cleaned
    if isinstance(value, t.Iterable):
        return None if depth == 0 else [clean(item, depth - 1) for item in value]
    return report.plain(value)


class _Scissors:
    """Cuts values to a measure and notes where."""

    def __init__(self, items: int, characters: int) -> None:
        self.items = items
        self.characters = characters
        self.cuts: list[dict[str, t.Any]] = []

    def _note(self, place: str, kept: int, total: int) -> None:
        self.cuts.append({"path": place[:300], "kept": kept, "total": total})

    def cut(self, value: t.Any, place: str) -> t.Any:
        """The value, its lists, mappings and texts no longer than the measure."""
        if isinstance(value, str):
            if len(value) > self.characters:
                self._note(place, self.characters, len(value))
            return value[: self.characters]
        if isinstance(value, list):
            if len(value) > self.items:
                self._note(place, self.items, len(value))
            return [self.cut(item, f"{place}/{number}") for number, item in enumerate(value[: self.items])]
        if isinstance(value, dict):
            if len(value) > self.items:
                self._note(place, self.items, len(value))
            kept = list(value.items())[: self.items]
            return {key: self.cut(item, f"{place}/{key.replace('~', '~0').replace('/', '~1')}") for key, item in kept}
        return value


def _size(value: t.Any) -> int:
    return len(text_of(value).encode("utf-8"))


def _bounded(value: t.Any, place: str, limit: int) -> tuple[t.Any, list[dict[str, t.Any]]]:
    """A value of at most `limit` bytes and what was cut; an empty one of its kind where even the smallest measure is too much."""
    for items, characters in MEASURES:
        scissors = _Scissors(items, characters)
        smaller = scissors.cut(value, place)
        if _size(smaller) <= limit:
            return smaller, scissors.cuts
    return type(value)(), [{"path": place, "kept": 0, "total": len(value)}]


def node_document(
    node: str,
    cluster: str | None,
    role: str | None,
    facts: t.Mapping[str, t.Any],
    findings: t.Iterable[t.Mapping[str, t.Any]],
    observed_at: str,
) -> dict[str, t.Any]:
    """The document of a node.

    Args:
        node: its inventory name.
        cluster: its cluster, None for a host that is in none.
        role: head or worker, None without a plan.
        facts: its ansible_facts.spark, empty when it was not looked at.
        findings: of this node, of its cluster as a whole and of the fleet as a whole.
        observed_at: time in UTC, ISO 8601.

    Returns:
        What docs/schema/node-document.json describes, at most LIMIT bytes as text. Where something had to be left out, `cut` says
        what: {path: JSON pointer, kept, total}, counted in items, or in characters for a text.
    """
    found = report.ordered(findings)
    document: dict[str, t.Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": "gb10.fleet.node",
        "collector": collector(),
        "observed_at": report.plain(observed_at, 40),
        "node": report.plain(node, 300),
        "cluster": report.plain(cluster, 300) if cluster else None,
        "role": role if role in ("head", "worker") else None,
        "looked_at": bool(facts),
        "verdict": report.verdict(found),
        "counts": report.counts(found),
        "findings": [],
        "facts": {},
        "cut": [],
    }
    document["findings"], cuts = _bounded(found, "/findings", FINDINGS_LIMIT)
    # 64 KiB are what the frame and the list of cuts can take.
    room = LIMIT - _size(document) - 64 * 1024
    plain_facts = {
        name: value if isinstance(value, list if name == "unread" else dict) or name not in SUBSETS else None
        for name, value in clean(facts).items()
    }
    document["facts"], more = _bounded(plain_facts, "/facts", room)
    cuts += more
    document["cut"] = cuts[:CUTS]
    if len(cuts) > CUTS:
        document["cut"].append({"path": "", "kept": CUTS, "total": len(cuts)})
    return document


def text_of(document: t.Any) -> str:
    """A document as text, the same for the same content."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1, sort_keys=False) + "\n"


def file_name(node: str) -> str:
    """The name of a node's file: no name leads out of the folder, and no two nodes share one."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", node)[:100]
    if safe != node or not safe.strip(".") or safe.startswith("."):
        digest = hashlib.sha256(node.encode("utf-8", "replace")).hexdigest()[:8]
        safe = f"{safe.lstrip('.') or 'node'}-{digest}"
    return f"{safe}.json"
