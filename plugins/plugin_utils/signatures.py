# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the figures and texts of the gates mean (signatures.yml): measurements in, findings out. Run on the controller.

Bandwidth of NCCL is bus bandwidth in GB/s as nccl-tests has it, shown in Gb/s as well; that of ib_write_bw is in Gb/s. Both one way.
"""

from __future__ import annotations

import functools
import os
import re
import typing as t

import yaml
from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue

BITS = 8
LONGEST_LINE = 300
# A run that was measured and is good enough to serve on.
GOOD = ("nccl.bandwidth", "nccl.below_mark")


@functools.lru_cache(maxsize=None)
def signatures() -> dict[str, t.Any]:
    """signatures.yml: {texts, loss_counters, bandwidth}."""
    with open(os.path.join(catalogue.FOLDER, "signatures.yml"), encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def read_text(gate: str, text: str) -> tuple[dict[str, t.Any], str] | None:
    """The first known text in what a gate's programs said.

    Args:
        gate: nccl or rdma.
        text: their output.

    Returns:
        The row of `texts` and the line that shows it; None for a text that nothing is known of.
    """
    for row in signatures()["texts"]:
        match = re.search(row["pattern"].replace("\n", ""), text) if gate in row["gates"] else None
        if match:
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            return row, " ".join(text[begin : len(text) if end < 0 else end].split())[:LONGEST_LINE]
    return None


def band(
    gate: str, shape: str, figure: float, expected: float | None = None, minimum: float | None = None, rdma_gbps: float | None = None
) -> dict[str, t.Any]:
    """The row of `bandwidth` that a figure falls into.

    Args:
        gate: nccl or rdma.
        shape: name of the gate's list, as pair or ring.
        figure: bandwidth, in the unit of the gate's lists.
        expected: figure from which on it is as it should be; None for that of the list.
        minimum: figure below which it fails; None for that of the list.
        rdma_gbps: what ib_write_bw gave over all rails, Gb/s; None when it was not measured.

    Returns:
        The row; one that is good, a warning or bad as the two limits have it.
    """
    good, warning, *bad = signatures()["bandwidth"][gate][shape]
    if figure >= (good["from"] if expected is None else expected):
        return good
    if figure >= (warning["from"] if minimum is None else minimum):
        return warning
    known = [row for row in bad if "rdma_from" not in row or (rdma_gbps is not None and rdma_gbps >= row["rdma_from"])]
    return next((row for row in known if figure >= row["from"]), known[-1])


def both_units(figure: float) -> str:
    """A bandwidth in GB/s and Gb/s."""
    return f"{figure:.2f} GB/s ({figure * BITS:.0f} Gb/s)"


def worst_of_largest(rows: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Mapping[str, t.Any]]:
    """The row of the largest size of each collective."""
    largest: dict[str, t.Mapping[str, t.Any]] = {}
    for row in sorted(rows, key=lambda row: row["bytes"]):
        largest[row.get("collective") or "collective"] = row
    return largest


def figures_text(rows: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Bus bandwidth of each collective at its largest size."""
    return ", ".join(f"{name} {both_units(row['busbw'])}" for name, row in worst_of_largest(rows).items())


def _losses(reports: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, int]:
    """Counters of lost packets that grew on any node, summed over devices."""
    names = signatures()["loss_counters"]["names"]
    grown: dict[str, int] = {}
    for report in reports:
        for counters in (report.get("counters") or {}).values():
            for name, count in counters.items():
                if name in names and count > 0:
                    grown[name] = grown.get(name, 0) + count
    return grown


def judge_nccl_failure(stage: str, error: str, text: str) -> tuple[str, str, str]:
    """Why a rank did not end well.

    Args:
        stage: where it was: program, torch, gpu, meet, connect, measure.
        error: what it raised.
        text: what NCCL said before, which names the cause better than what is raised.

    Returns:
        Id of the finding, what is the matter, and the evidence.
    """
    known = read_text("nccl", f"{text}\n{error}")
    if known:
        return known[0]["finding"], f"{catalogue.catalogue()[known[0]['finding']]['title']}.", known[1]
    return "nccl.failed", f"NCCL failed at the stage {stage}.", " ".join(error.split())[:LONGEST_LINE]


def _library(report: t.Mapping[str, t.Any]) -> str:
    library = report.get("library") or {}
    return f"{library.get('path')}, NCCL {report.get('nccl') or 'of unknown version'}, build id {library.get('build_id')}"


def _wrong_library(reports: t.Sequence[t.Mapping[str, t.Any]], names: t.Sequence[str], version: str | None) -> tuple[str, str, str] | None:
    """Whether the ranks loaded different builds, or another version than the toolchain's."""
    told = "; ".join(f"{names[report['rank']]}: {_library(report)}" for report in reports)
    for key in ("build_id", "size_bytes"):
        if len({(report.get("library") or {}).get(key) for report in reports} - {None}) > 1:
            return "nccl.library_differs", "The nodes load different builds of NCCL.", told
    loaded = {report.get("nccl") for report in reports} - {None}
    if len(loaded) > 1:
        return "nccl.library_differs", "The nodes load different versions of NCCL.", told
    if version and loaded and loaded != {version}:
        return "nccl.build", f"The ranks load NCCL {', '.join(sorted(loaded))}, and the toolchain has {version}.", told
    return None


def judge_nccl(
    measured: t.Mapping[str, t.Any], names: t.Sequence[str], shape: str = "pair", expected: float | None = None, minimum: float | None = None,
    rdma_gbps: float | None = None, version: str | None = None,
) -> list[tuple[str, str, str]]:
    """The verdict on a run whose ranks ended by themselves.

    Args:
        measured: rows ({collective, bytes, busbw, wrong (null when not compared)}), ranks (how many took part), reports ({rank, nccl,
            library, counters} of each node), log (as parse_log) and unread ([line] of the output that was not understood).
        names: inventory names of the nodes in the order of their ranks.
        shape: pair or ring.
        expected: GB/s from which on it is as it should be.
        minimum: GB/s below which it fails.
        rdma_gbps: what ib_write_bw gave over all rails, Gb/s.
        version: the NCCL that the toolchain has.

    Returns:
        (id, what, evidence), the gravest reason first and only that: what follows from it is not told too. Lines that were not
        understood are told beside it.
    """
    rows, unread = measured["rows"], list(measured.get("unread") or [])
    beside = [("nccl.not_understood", "A part of the test's output was not understood.", unread[0])] if unread else []
    if not rows:
        return beside or [("nccl.no_result", "The test printed no result, whatever its exit status was.", "no row")]
    if measured["ranks"] < 2 or len(names) < 2:
        evidence = f"ranks {measured['ranks']}, nodes {len(names)}, {figures_text(rows)}"
        return [("nccl.single_rank", f"Only one rank ran, of {len(names)} nodes, so nothing went over the fabric.", evidence)]
    wrong = [row for row in rows if row.get("wrong")]
    if wrong:
        evidence = f"{wrong[0].get('collective')} of {wrong[0]['bytes']} bytes: {wrong[0]['wrong']}"
        return [("nccl.wrong_values", f"{sum(row['wrong'] for row in wrong)} values came out wrong.", evidence)]
    if any(row.get("wrong") is None for row in rows):
        return [("nccl.not_validated", "The values were not compared, so a fast result proves nothing.", "#wrong is N/A")]
    library = _wrong_library(measured["reports"], names, version)
    if library and library[0] == "nccl.library_differs":
        return [library]
    log = measured.get("log") or {}
    transports, figures = list(log.get("transports") or []), figures_text(rows)
    worst = min(row["busbw"] for row in worst_of_largest(rows).values())
    evidence = f"{figures} of bus bandwidth" + (f" via {', '.join(transports)}" if transports else "")
    if "NET/Socket" in transports or (not transports and log.get("network") == "Socket"):
        return [("nccl.sockets", f"NCCL went over sockets and not over RDMA, at {both_units(worst)}.", evidence), *beside]
    if transports and not any(name.startswith("NET/") for name in transports):
        return [("nccl.not_fabric", f"The ranks are on one host and did not use the fabric, at {both_units(worst)}.", evidence)]
    if library:
        return [(library[0], library[1], f"{library[2]}; {evidence}")]
    if len(log.get("devices") or []) == 1:
        evidence += f", RDMA device {log['devices'][0]} only"
    row = band("nccl", shape, worst, expected, minimum, rdma_gbps)
    identifier = row["finding"]
    losses = _losses(measured["reports"])
    if losses:
        evidence += "; counters that grew: " + ", ".join(f"{name} {count}" for name, count in sorted(losses.items()))
        if identifier in ("nccl.slow", "nccl.one_rail", "nccl.below_mark") and sum(losses.values()) > signatures()["loss_counters"]["few"]:
            identifier = "nccl.packet_loss"
    title = catalogue.catalogue()[identifier]["title"]
    return [(identifier, f"NCCL reaches {both_units(worst)} of bus bandwidth: {title[0].lower()}{title[1:]}.", evidence), *beside]
