# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles: how one model is served, one YAML file each. Run on the controller."""

from __future__ import annotations

import os
import re
import typing as t

import yaml

from ansible_collections.gb10.fleet.plugins.plugin_utils.toolchain import suggestion

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "roles", "serve", "profiles")
TYPES: dict[str, tuple[type, str]] = {
    "model": (str, "the name of a model"),
    "served_name": (str, "the name that clients ask for"),
    "tensor_parallel": (int, "a number of nodes"),
}
OPTIONAL: dict[str, tuple[type, str]] = {
    "toolchains": (list, "a list of toolchain names"),
    "engine": (dict, "a mapping of vLLM flags to values"),
    "smoke": (dict, "a mapping"),
}
# gb10-serve@NAME.service, /etc/gb10/serve/NAME.yaml.
UNIT_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
QUESTION = [{"role": "user", "content": "Say hello in one sentence."}]


class ProfileError(Exception):
    """A sentence for the user that names the file or the variable and the cure."""


def profile_paths(own_folder: str | None = None, folder: str = FOLDER) -> dict[str, str]:
    """Name to file of all profiles; those in the inventory's own folder win over the collection's.

    Args:
        own_folder: spark_profiles, a folder on the controller; `~` is understood.
        folder: where the collection's own profiles lie.

    Raises:
        ProfileError: spark_profiles is no folder.
    """
    folders = [folder]
    if own_folder:
        # Not abspath, which would take `..` behind a link such as the root's spark-pair for the wrong folder.
        own = os.path.realpath(os.path.expanduser(str(own_folder)))
        if not os.path.isdir(own):
            raise ProfileError(f"spark_profiles is {own_folder}, which is no folder on the controller: correct it or leave it out.")
        folders.append(own)
    paths = {}
    for place in folders:
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            if name.endswith((".yml", ".yaml")) and not name.startswith("."):
                paths[name.rsplit(".", 1)[0]] = os.path.join(place, name)
    return paths


def load_profile(name: str, path: str) -> dict[str, t.Any]:
    """A profile's content, checked, with `toolchains`, `engine` and `smoke` always there.

    Args:
        name: the profile's name, which is the file's name without its ending.
        path: the file.

    Returns:
        {name, model, served_name, tensor_parallel, toolchains (empty for any), engine, smoke, ...}.

    Raises:
        ProfileError: the file cannot be read or a field is wrong.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            content = yaml.safe_load(stream)
    except (OSError, yaml.YAMLError) as error:
        raise ProfileError(f"The profile {path} cannot be read: {' '.join(str(error).split())}") from error
    if not UNIT_NAME.match(name):
        raise ProfileError(f"The profile {path} names a systemd unit: use letters, digits, points, dashes and underscores in its name.")
    if not isinstance(content, dict):
        raise ProfileError(f"The profile {path} must be a mapping with {', '.join(TYPES)}.")
    if content.get("name", name) != name:
        raise ProfileError(f"The profile {path} calls itself {content['name']}: name the file {content['name']}.yml or correct name.")
    known = {**TYPES, **OPTIONAL}
    for field in content:
        if field != "name" and field not in known:
            raise ProfileError(f"The profile {path} has {field}, which no profile has; {suggestion(str(field), known)}.")
    for field, (kind, meaning) in known.items():
        value = content.get(field)
        if value is None and field in OPTIONAL:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ProfileError(f"The profile {path} needs {field}, {meaning}; got: {value}.")
    if not UNIT_NAME.match(content["model"]):
        raise ProfileError(
            f"The profile {path} names its model {content['model']}, which is no name of a folder: use letters, digits, points, dashes and underscores."
        )
    if content["tensor_parallel"] < 1:
        raise ProfileError(f"The profile {path} needs tensor_parallel of 1 or more; got: {content['tensor_parallel']}.")
    empty = {field: kind() for field, (kind, meaning) in OPTIONAL.items() if content.get(field) is None}
    profile = {**content, **empty, "name": name}
    # Every served model is asked something; without an answer of its own to expect, any proper one will do.
    profile["smoke"] = {"messages": QUESTION, **profile["smoke"]}
    return profile
