# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

"""What breaks playbooks on other machines than ours: conditions that are no booleans, locks of apt, and users without acl."""

import ast
import functools
from pathlib import Path

import jinja2
import pytest
import yaml
from jinja2 import nodes

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "fixtures" / "host"
CONDITIONS = ("when", "until", "changed_when", "failed_when", "that")
# Booleans of Ansible itself; those of our modules come from their documents.
GIVEN_NAMES = {"ansible_check_mode", "ansible_diff_mode", "true", "false"}
GIVEN_RESULTS = {"changed", "failed", "skipped", "exists", "isdir", "islnk", "isreg", "rebooted"}
METHODS = {"startswith", "endswith", "isdigit"}
FILES = sorted(
    path for pattern in ("roles/*/tasks/*.yml", "roles/*/handlers/*.yml", "playbooks/*.yml", "molecule/*/*.yml", "tests/integration/**/*.yml")
    for path in ROOT.glob(pattern)
)


class AnyFilter(dict):
    """Every filter is known: only the shape of an expression counts here."""

    def __contains__(self, name):
        return True

    def __missing__(self, name):
        return lambda *arguments, **options: None


class Loader(yaml.SafeLoader):
    """Loads files with Ansible's tags."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: None)
ENVIRONMENT = jinja2.Environment(autoescape=False)  # noqa: S701
ENVIRONMENT.filters = AnyFilter(ENVIRONMENT.filters)
ENVIRONMENT.tests = AnyFilter(ENVIRONMENT.tests)


def load(path):
    return yaml.load(path.read_text(encoding="utf-8"), Loader)  # noqa: S506


def booleans_of(options):
    """Names of options or returned values that are documented as booleans, at any depth."""
    found = set()
    for name, option in (options or {}).items():
        if isinstance(option, dict):
            found |= {name} if option.get("type") == "bool" else set()
            for inner in ("contains", "options", "suboptions"):
                found |= booleans_of(option.get(inner))
    return found


@functools.lru_cache
def documented_booleans():
    """What our modules return as booleans, and what our roles take as such."""
    results, names = set(GIVEN_RESULTS), set(GIVEN_NAMES)
    for path in (ROOT / "plugins" / "modules").glob("*.py"):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign) and statement.targets[0].id == "RETURN":
                results |= booleans_of(yaml.safe_load(ast.literal_eval(statement.value)))
    for path in ROOT.glob("roles/*/meta/argument_specs.yml"):
        for spec in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            names |= booleans_of(spec.get("options"))
    return results, names


def expression(text):
    """The expression of a template that is nothing else, or None."""
    body = ENVIRONMENT.parse(text).body
    return body[0].nodes[0] if len(body) == 1 and isinstance(body[0], nodes.Output) and len(body[0].nodes) == 1 else None


def is_boolean(node, variables):
    """Whether an expression gives true or false whatever its variables hold."""
    results, names = documented_booleans()
    if isinstance(node, (nodes.Compare, nodes.Test, nodes.Not)):
        return True
    if isinstance(node, nodes.Const):
        return isinstance(node.value, bool)
    if isinstance(node, (nodes.And, nodes.Or)):
        return is_boolean(node.left, variables) and is_boolean(node.right, variables)
    if isinstance(node, nodes.CondExpr):
        return node.expr2 is not None and is_boolean(node.expr1, variables) and is_boolean(node.expr2, variables)
    if isinstance(node, nodes.Filter):
        defaulted = node.name == "default" and is_boolean(node.node, variables) and is_boolean(node.args[0], variables)
        return node.name in ("bool", "ansible.builtin.bool") or defaulted
    if isinstance(node, nodes.Call):
        return isinstance(node.node, nodes.Getattr) and node.node.attr in METHODS
    if isinstance(node, nodes.Getattr):
        return node.attr in results
    return isinstance(node, nodes.Name) and (node.name in names or node.name in variables)


def boolean_variables(content):
    """Names that vars: or set_fact give a boolean in this file."""
    found = set()

    def look(node):
        if isinstance(node, list):
            for item in node:
                look(item)
        elif isinstance(node, dict):
            for key, value in node.items():
                for name, text in value.items() if key in ("vars", "ansible.builtin.set_fact") and isinstance(value, dict) else ():
                    inner = expression(text) if isinstance(text, str) else None
                    if isinstance(text, bool) or (inner is not None and is_boolean(inner, found)):
                        found.add(name)
                look(value)

    look(content)
    return found


def conditions(node):
    """Every condition below a node, lists taken apart."""
    if isinstance(node, list):
        for item in node:
            yield from conditions(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in CONDITIONS:
                yield from value if isinstance(value, list) else [value]
            else:
                yield from conditions(value)


def broken_conditions(content, variables=frozenset()):
    known = boolean_variables(content) | variables
    return [text for text in conditions(content) if not isinstance(text, bool) and not is_boolean(expression(f"{{{{ {text} }}}}"), known)]


def walk(node):
    """Every mapping below a node."""
    if isinstance(node, list):
        for item in node:
            yield from walk(item)
    elif isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)


def test_case_58_three_conditions_are_found():
    assert broken_conditions(load(RECORDED / "conditions__ansible_2.19__no_booleans.yaml.txt")) == [
        "_apt_daily_timer_d", "solr_cores and solr_version.split('.')[0] >= '5'", "hostvars[item].ansible_facts",
    ]


@pytest.mark.parametrize(
    "text, broken",
    [
        ("items | length", True), ("items | length > 0", False), ("name", True), ("name is defined", False), ("'text'", True), ("result.stdout", True),
        ("result.changed", False), ("name | bool", False), ("a == 1 and b", True), ("not name", False), ("x if a == 1 else 2", True), ("true", False),
        ("result.rc", True), ("name.startswith('a')", False), ("name.split('a')", True), ("flag | default(false)", True), ("a in b or c not in d", False),
        ("result.changed | default(false)", False), ("(a == 1) if b else (c == 2)", False), ("1", True),
    ],
)
def test_shapes_of_conditions(text, broken):
    assert bool(broken_conditions([{"when": text}])) is broken


def test_variables_that_a_file_makes_booleans_are_known():
    tasks = [
        {"vars": {"same": "{{ a == b }}", "text": "{{ a }}", "on": True}}, {"ansible.builtin.set_fact": {"both": "{{ same and on }}"}},
        {"when": ["same", "both", "on", "text"]},
    ]
    assert broken_conditions(tasks) == ["text"]


def test_case_58_every_condition_of_ours_is_a_boolean():
    assert len(FILES) > 40
    # A role's files share their variables.
    shared: dict[Path, set[str]] = {}
    for path in FILES:
        shared.setdefault(path.parent, set()).update(boolean_variables(load(path)))
    assert {str(path.relative_to(ROOT)): found for path in FILES if (found := broken_conditions(load(path), frozenset(shared[path.parent])))} == {}


def test_case_60_apt_waits_for_its_lock_and_nobody_breaks_it():
    waits = []
    for path in FILES:
        for mapping in walk(load(path)):
            if isinstance(mapping.get("ansible.builtin.apt"), dict):
                waits.append(mapping["ansible.builtin.apt"].get("lock_timeout", 0))
        text = path.read_text(encoding="utf-8")
        assert not [word for word in ("dpkg/lock", "lists/lock", "killall", "fuser -k", "pkill") if word in text], path
    assert waits and min(waits) >= 60


def test_case_62_no_task_becomes_a_user_who_would_need_acl():
    message = (RECORDED / "ansible__unknown__become_without_acl.txt").read_text(encoding="utf-8")
    assert "becoming an unprivileged user" in message and "A+user:" in message
    users = {
        (str(path.relative_to(ROOT)), mapping["become_user"]) for path in FILES for mapping in walk(load(path)) if mapping.get("become_user", "root") != "root"
    }
    assert users == set()
    assert "world_readable" not in (ROOT / "ansible.cfg").read_text(encoding="utf-8")
