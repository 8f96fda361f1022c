# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

"""Every role, and the collection around them, in the one shape."""

import os
from pathlib import Path

import pytest
import yaml
from ansible_collections.gb10.fleet.plugins.plugin_utils.profiles import load_profile, profile_paths

ROOT = Path(__file__).parents[2]
ROLES = sorted(path.parent.parent.name for path in ROOT.glob("roles/*/meta/argument_specs.yml"))
# Their defaults ask the controller's environment first; the spec shows what holds when it says nothing.
FROM_THE_ENVIRONMENT = ("lab_name", "lab_cache")
SERVING = ("host", "fabric", "nccl", "vllm", "model", "ray", "serve")


def load(*parts):
    return yaml.safe_load(ROOT.joinpath("roles", *parts).read_text(encoding="utf-8"))


def test_every_role_has_an_argument_spec():
    assert ROLES == sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())


@pytest.mark.parametrize("role", ROLES)
def test_defaults_equal_the_argument_spec(role):
    options = load(role, "meta", "argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = load(role, "defaults", "main.yml") or {}
    optional = {name for name, option in options.items() if not option.get("required")}
    without_default = {name for name in optional if "default" not in options[name]}
    assert set(defaults) >= optional - without_default
    assert set(defaults) <= set(options)
    differing = [name for name, value in defaults.items() if options[name].get("default") != value]
    assert differing == [name for name in defaults if name in FROM_THE_ENVIRONMENT]


@pytest.mark.parametrize("role", ROLES)
def test_variables_carry_the_roles_name(role):
    options = load(role, "meta", "argument_specs.yml")["argument_specs"]["main"]["options"]
    assert [name for name in options if not name.startswith(f"{role}_")] == []


@pytest.mark.parametrize("role", [role for role in ROLES if role in SERVING])
def test_roles_have_one_shape(role):
    for name in ("main", "verify", "teardown"):
        assert load(role, "tasks", f"{name}.yml"), name
    assert load(role, "meta", "main.yml")["galaxy_info"]["license"] == "GPL-3.0-or-later"
    last = load(role, "tasks", "main.yml")[-1]
    assert last["ansible.builtin.include_tasks"] == "verify.yml"


@pytest.mark.parametrize("role", ROLES)
def test_tasks_use_full_names_of_modules(role):
    keywords = {"name", "when", "become", "register", "vars", "loop", "loop_control", "changed_when", "failed_when", "check_mode", "until",
                "block", "rescue", "always", "tags", "notify", "listen", "delegate_to", "run_once", "retries", "delay", "no_log",
                "environment", "diff", "args", "throttle", "async", "poll", "become_user", "any_errors_fatal", "timeout", "with_items",
                "ignore_unreachable", "delegate_facts", "connection"}

    def short_names(tasks):
        for task in tasks or []:
            for part in ("block", "rescue", "always"):
                yield from short_names(task.get(part))
            yield from (key for key in task if key not in keywords and key.count(".") < 2)

    for path in (ROOT / "roles" / role).glob("[th]a*/*.yml"):
        assert list(short_names(yaml.safe_load(path.read_text(encoding="utf-8")))) == [], path


def entry_points(node, path):
    """Every (file, role, tasks_from) in a playbook; a role that a loop names is each of the loop's."""
    if isinstance(node, list):
        for item in node:
            yield from entry_points(item, path)
    elif isinstance(node, dict):
        included = node.get("ansible.builtin.include_role") or node.get("ansible.builtin.import_role") or {}
        if "tasks_from" in included:
            names = node["loop"] if "{{" in included["name"] else [included["name"].removeprefix("gb10.fleet.")]
            yield from ((path, name, included["tasks_from"]) for name in names)
        for value in node.values():
            yield from entry_points(value, path)


ENTRY_POINTS = [
    found for pattern in ("playbooks/*.yml", "molecule/*/*.yml") for path in sorted(ROOT.glob(pattern))
    for found in entry_points(yaml.safe_load(path.read_text(encoding="utf-8")), str(path.relative_to(ROOT)))
]


def test_entry_points_are_found():
    assert {("playbooks/verify.yml", "ray", "verify"), ("playbooks/preflight.yml", "vllm", "preflight")} <= set(ENTRY_POINTS)
    assert [role for path, role, _content in ENTRY_POINTS if path == "playbooks/teardown.yml"] == list(reversed(SERVING))


@pytest.mark.parametrize(("path", "role", "entry_point"), ENTRY_POINTS)
def test_entry_points_are_validated(path, role, entry_point):
    # Core finds the spec by the very text of tasks_from: with .yml at its end it finds none, and validates nothing.
    assert entry_point in load(role, "meta", "argument_specs.yml")["argument_specs"], path


@pytest.mark.parametrize("role", SERVING)
def test_a_teardown_needs_no_plan(role):
    assert load(role, "meta", "argument_specs.yml")["argument_specs"]["teardown"]["options"] == {}


def test_the_action_group_lists_every_module():
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    modules = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("[!_]*.py"))
    assert runtime["action_groups"]["fleet"] == modules


@pytest.mark.skipif(not (ROOT / "collections").is_dir(), reason="an installed collection has no links to itself")
def test_the_collection_is_five_links_to_the_checkout():
    folder = ROOT / "collections" / "ansible_collections" / "gb10" / "fleet"
    assert sorted(os.listdir(folder)) == ["galaxy.yml", "meta", "playbooks", "plugins", "roles"]
    for path in folder.iterdir():
        assert path.is_symlink() and path.resolve() == (ROOT / path.name).resolve()


@pytest.mark.skipif(not (ROOT / "inventories").is_dir(), reason="an installed collection has no inventories")
@pytest.mark.parametrize("name", ["spark-pair", "spark-fleet"])
def test_inventories_have_a_link_at_the_root(name):
    assert os.readlink(ROOT / name) == f"inventories/{name}"


@pytest.mark.skipif(not (ROOT / "inventories").is_dir(), reason="an installed collection has no inventories")
@pytest.mark.parametrize("name", ["spark-pair", "spark-fleet"])
def test_the_sample_inventories_serve_a_profile_that_their_toolchain_can(name):
    variables = yaml.safe_load((ROOT / "inventories" / name / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    own = variables["spark_profiles"].replace("{{ inventory_dir }}", str(ROOT / name if (ROOT / name).exists() else ROOT / "inventories" / name))
    path = profile_paths(own)[variables["spark_profile"]]
    able = load_profile(variables["spark_profile"], path)["toolchains"]
    assert not able or variables.get("spark_toolchain", "cuda-12.8") in able
