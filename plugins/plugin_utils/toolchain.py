# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The toolchain table: versions that belong together. Pure functions, run on the controller."""

from __future__ import annotations

import difflib
import os
import re
import typing as t

import yaml

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toolchains.yml")
DEFAULT = "cuda-12.8"
DEVICES = ("cuda", "cpu")
VERSIONS = ("cuda", "vllm", "torch", "ray", "nccl", "python")
DEFAULTS: dict[str, t.Any] = {
    "cuda": None,
    "nccl": None,
    "architectures": [],
    "nvfp4": False,
    "environment": {},
    "engine": {},
    "source": "spark_toolchains of this inventory",
    "notes": "",
}
REQUIRED = ("device", "vllm", "torch", "ray", "python")

_VERSION = re.compile(r"^\d+(\.\d+)*([a-z0-9.+-]*)$")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class ToolchainError(Exception):
    """A sentence for the user that names spark_toolchain or spark_toolchains and the cure."""


def suggestion(word: str, known: t.Iterable[str]) -> str:
    """The known words as text, the closest one first in a question where one is close.

    Args:
        word: what was written.
        known: what there is.

    Returns:
        For example "did you mean cuda-12.8 (there are cpu, cuda-12.8)".
    """
    names = sorted(known)
    close = difflib.get_close_matches(str(word), names, n=1)
    listed = f"there are {', '.join(names)}" if names else "there are none"
    return f"did you mean {close[0]} ({listed})" if close else listed


def load_table(path: str = TABLE) -> dict[str, dict]:
    """The rows that come with the collection, by name."""
    with open(path, encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def problems_of_row(name: str, row: t.Any) -> list[str]:
    """What is wrong with a row of spark_toolchains, each as a sentence with the cure.

    Args:
        name: the row's name.
        row: the row as the user wrote it.
    """
    where = f"spark_toolchains['{name}']"
    if not isinstance(row, dict):
        return [f"{where} must be a mapping with {', '.join(REQUIRED)}."]
    problems = []
    missing = [key for key in REQUIRED if row.get(key) is None]
    if missing:
        problems.append(f"{where} lacks {', '.join(missing)}: add what this toolchain has.")
    for key in sorted(set(row) - set(REQUIRED) - set(DEFAULTS) - {"name"}):
        problems.append(f"{where} has {key}, which no toolchain has; {suggestion(key, (*REQUIRED, *DEFAULTS))}.")
    if row.get("device") is not None and row["device"] not in DEVICES:
        problems.append(f"{where}.device is {row['device']}: set it to {' or '.join(DEVICES)}.")
    for key in VERSIONS:
        value = row.get(key)
        if value is not None and not (isinstance(value, str) and _VERSION.match(value)):
            problems.append(f"{where}.{key} must be a version in quotes such as '1.2.3'; got: {value}.")
    for key in ("environment", "engine"):
        if not isinstance(row.get(key, {}), dict):
            problems.append(f"{where}.{key} must be a mapping of names to values.")
    if isinstance(row.get("environment"), dict):
        for variable, value in sorted(row["environment"].items()):
            if not _VARIABLE.match(str(variable)) or isinstance(value, (dict, list)) or "\n" in str(value):
                problems.append(f"{where}.environment['{variable}'] must be one line of text under a variable's name.")
    if not isinstance(row.get("architectures", []), list):
        problems.append(f"{where}.architectures must be a list such as ['12.0'].")
    elif row.get("cuda") and _is_older(row["cuda"], (12, 9)):
        for architecture in row.get("architectures", []):
            if str(architecture).startswith("12.1"):
                problems.append(
                    f"{where}.architectures has {architecture}, which CUDA {row['cuda']} does not know"
                    " (Unsupported gpu architecture): set it to '12.0', whose code runs on the GB10's 12.1."
                )
    return problems


def _is_older(version: t.Any, than: tuple[int, ...]) -> bool:
    numbers = re.findall(r"\d+", str(version))[: len(than)]
    return tuple(int(number) for number in numbers) < than


def toolchain(name: str, own_rows: dict[str, dict] | None = None) -> dict:
    """One row of the toolchain table.

    Args:
        name: the row's name, spark_toolchain.
        own_rows: spark_toolchains of the inventory; a row there replaces the collection's row of that name.

    Returns:
        {name, device, cuda, vllm, torch, ray, nccl, python, architectures, nvfp4, environment, engine, source, notes}.

    Raises:
        ToolchainError: the name is unknown or a row of the inventory is not well formed.
    """
    own_rows = own_rows or {}
    if not isinstance(own_rows, dict):
        raise ToolchainError("spark_toolchains must be a mapping of names to rows.")
    table = load_table()
    if name in own_rows:
        problems = problems_of_row(name, own_rows[name])
        if problems:
            raise ToolchainError(" ".join(problems))
        row = {**DEFAULTS, **own_rows[name]}
    elif name in table:
        row = table[name]
    else:
        raise ToolchainError(f"spark_toolchain is {name}, which the toolchain table has not; {suggestion(name, [*table, *own_rows])}.")
    row = {**row, "name": name}
    row["environment"] = {str(variable): str(value) for variable, value in row["environment"].items()}
    return row
