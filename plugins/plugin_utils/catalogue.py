# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of findings (findings.yml), what is known of versions (known.yml), and how a finding is made. Run on the controller."""

from __future__ import annotations

import functools
import os
import re
import typing as t

import yaml

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEVERITIES = ("fail", "warn", "info", "ok")
BAD_KINDS = ("kernel", "next_kernel", "driver", "nic_firmware", "bios", "bios_date", "dgx_os", "vbios", "firmware", "package")
FLOOR_KINDS = ("driver", "nic_firmware", "firmware", "package", "disk_free_bytes", "inodes_free")
# What tells which firmware device or package a row is about.
_WHICH = {"firmware": "guid", "package": "name"}
_IDENTIFIER = re.compile(r"^[a-z_]+\.[a-z0-9_]+$")
_TEXTS = ("symptom", "cure", "source", "strength", "from", "below", "path", "finding")


class KnownError(ValueError):
    """A row of spark_known_bad or spark_floors that is not understood: a sentence that names the variable and the cure."""


def _load(name: str) -> t.Any:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as stream:
        return yaml.safe_load(stream)


@functools.lru_cache(maxsize=None)
def catalogue() -> dict[str, dict[str, t.Any]]:
    """The rows of findings.yml, and one for each row of known.yml, by id.

    Returns:
        {id: {severity, title, rule, cause, cure, source, cured_by, visible}}, texts empty and cured_by None where the file has none.
    """
    rows = {**_load("findings.yml")}
    content = known()
    for row in content["known_bad"]:
        rows[row["id"]] = {**_bad_row(row), "visible": "facts"}
    for row in content["floors"]:
        if "finding" not in row:
            rows[row["id"]] = {
                "severity": row["severity"], "title": f"Too old: {row['kind'].replace('_', ' ')}", "rule": f"Lower than {row['minimum']}.",
                "cure": row["cure"], "source": row["source"], "visible": "facts",
            }
    return {name: {"cause": "", "cure": "", "cured_by": None, **row} for name, row in rows.items()}


def _bad_row(row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    which = ", ".join([*row.get("exact", []), *(f"{start}*" for start in row.get("prefix", []))])
    edges = [f"{word} {row[word]}" for word in ("from", "below") if word in row]
    only = f" on {' and '.join(row['oem'])} machines" if row.get("oem") else ""
    unless = " without kho=off" if row.get("unless") == "kho_off" else ""
    return {
        "severity": row["severity"],
        "title": f"Known to be bad: {row['kind'].replace('_', ' ')}",
        "rule": f"{row['kind'].replace('_', ' ').capitalize()} {which or ', '.join(edges)}{only}{unless}.",
        "cause": row.get("symptom", ""), "cure": row["cure"],
        "source": f"{row['source']} (strength: {row.get('strength', 'not given')})",
    }


@functools.lru_cache(maxsize=None)
def known() -> dict[str, t.Any]:
    """known.yml: {counter_limits, known_bad, floors}."""
    return _load("known.yml")


def known_with(bad: t.Any, floors: t.Any) -> dict[str, list[dict[str, t.Any]]]:
    """The rows of known.yml with a site's own; one with the same id replaces the collection's.

    Args:
        bad: spark_known_bad.
        floors: spark_floors.

    Returns:
        {known_bad: [row], floors: [row]}.

    Raises:
        KnownError: a row is not understood.
    """
    result = {}
    for name, variable, own, kinds in (
        ("known_bad", "spark_known_bad", bad, BAD_KINDS), ("floors", "spark_floors", floors, FLOOR_KINDS),
    ):
        if not isinstance(own or [], list):
            raise KnownError(f"{variable} is {own}: write it as a list of rows.")
        rows = {row["id"]: row for row in known()[name]}
        for row in own or []:
            _check_row(variable, row, kinds, floor=name == "floors")
            rows[row["id"]] = {"source": f"the inventory's {variable}", "symptom": "", **row}
        result[name] = list(rows.values())
    return result


def _check_row(variable: str, row: t.Any, kinds: t.Sequence[str], floor: bool) -> None:
    if not isinstance(row, dict) or not _IDENTIFIER.match(str(row.get("id"))):
        raise KnownError(f"{variable} has {row}, which has no id of the form kernel.some_name: give it one.")
    where = f"{variable}, row {row['id']}"
    if row.get("kind") not in kinds:
        raise KnownError(f"{where}: kind is {row.get('kind')}; choose one of {', '.join(kinds)}.")
    if row.get("severity") not in SEVERITIES:
        raise KnownError(f"{where}: severity is {row.get('severity')}; choose one of {', '.join(SEVERITIES)}.")
    if not isinstance(row.get("cure"), str):
        raise KnownError(f"{where}: cure is missing; say what to do, as a sentence.")
    for key in _TEXTS:
        if key in row and not isinstance(row[key], str):
            raise KnownError(f"{where}: {key} is {row[key]}; write it as a text in quotes.")
    for key in ("exact", "prefix", "oem"):
        if key in row and not (isinstance(row[key], list) and all(isinstance(value, str) for value in row[key])):
            raise KnownError(f"{where}: {key} is {row[key]}; write it as a list of texts in quotes.")
    which = _WHICH.get(row["kind"])
    if which and not isinstance(row.get(which), str):
        raise KnownError(f"{where}: {which} is missing; say which {row['kind']} it is about.")
    if floor:
        number = row["kind"] in ("disk_free_bytes", "inodes_free")
        minimum = row.get("minimum")
        if isinstance(minimum, bool) or not isinstance(minimum, int if number else str):
            raise KnownError(f"{where}: minimum is {minimum}; write {'a number' if number else 'a version in quotes'}.")
        if number and not str(row.get("path", "")).startswith("/"):
            raise KnownError(f"{where}: path is {row.get('path')}; name one of the file systems of the facts, such as /opt/gb10.")
    elif not any(key in row for key in ("exact", "prefix", "from", "below")):
        raise KnownError(f"{where}: it matches nothing; give exact, prefix, from or below.")


def finding(identifier: str, severity: str | None, node: str | None, what: str, cure: str | None = None, **more: t.Any) -> dict[str, t.Any]:
    """A finding, completed from the catalogue.

    Args:
        identifier: id of the kind of finding.
        severity: ok, info, warn or fail; None for the catalogue's.
        node: inventory name of the host, or None for a cluster or the fleet.
        what: what is the matter, a sentence that names the rail, file or variable.
        cure: what to do; None for the catalogue's.
        more: evidence, cause, source, cluster.

    Returns:
        {id, severity, node, cluster, what, evidence, cause, cure, source, silenced, cured_by}.
    """
    row = catalogue().get(identifier, {})
    return {
        "id": identifier,
        "severity": severity or row.get("severity", "fail"),
        "node": node,
        "cluster": more.get("cluster"),
        "what": what,
        "evidence": more.get("evidence") or "",
        "cause": more.get("cause") or row.get("cause", ""),
        "cure": row.get("cure", "") if cure is None else cure,
        "source": more.get("source") or row.get("source", ""),
        "silenced": None,
        "cured_by": row.get("cured_by"),
    }


def complete(findings: t.Iterable[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Findings that a module of a node made (rail_check), with all fields of a finding."""
    return [
        {**finding(found["id"], found["severity"], found.get("node"), found["what"], found.get("cure") or None),
         **{key: value for key, value in found.items() if value not in (None, "")}}
        for found in findings
    ]


def order(findings: t.Iterable[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Worst first; silenced ones after all that count, then by cluster, node and id."""
    return sorted(
        findings,
        key=lambda found: (
            found["silenced"] is not None, SEVERITIES.index(found["severity"]), found["cluster"] or "", found["node"] or "", found["id"],
        ),
    )


def silence(findings: t.Sequence[dict[str, t.Any]], silences: t.Any, nodes: t.Container[str]) -> list[dict[str, t.Any]]:
    """The findings with the reason of those that a site has silenced, and a finding for each silence that does nothing.

    Args:
        findings: what was found.
        silences: spark_silenced_findings, {ID or ID@NODE: reason}.
        nodes: names of the fleet's nodes.

    Returns:
        As many findings, `silenced` set where a silence meets; then those about silences.
    """
    if not isinstance(silences or {}, dict):
        what = f"spark_silenced_findings is {silences}, which is no mapping."
        return [*findings, finding("settings.silence", None, None, what, "Write ID: reason.", evidence=str(silences))]
    reasons: dict[str, str] = {}
    about = []
    ids = {*catalogue(), *(found["id"] for found in findings)}
    for key, reason in (silences or {}).items():
        identifier, at, node = str(key).partition("@")
        if not isinstance(reason, str) or not reason.strip():
            what = f"spark_silenced_findings has {key} without a reason."
            about.append(finding("settings.silence", None, None, what, "Write why it may stay.", evidence=f"{key}: {reason}"))
        elif identifier not in ids or (at and node not in nodes):
            about.append(finding("settings.silence", None, None, f"spark_silenced_findings has {key}, which no finding is.", evidence=f"{key}: {reason}"))
        else:
            reasons[str(key)] = reason.strip()
    silenced = [
        {**found, "silenced": reasons.get(f"{found['id']}@{found['node']}") or reasons.get(found["id"])} if found["severity"] != "ok" else found
        for found in findings
    ]
    return [*silenced, *about]


def counting(findings: t.Iterable[t.Mapping[str, t.Any]], heals: bool = False) -> list[dict[str, t.Any]]:
    """The findings that make a run fail.

    Args:
        findings: findings.
        heals: whether the run sets right itself what has `cured_by: site`.
    """
    return [
        dict(found) for found in findings
        if found["severity"] == "fail" and not found.get("silenced") and not (heals and found.get("cured_by") == "site")
    ]
