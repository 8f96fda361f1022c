"""The collection as an artefact: built, installed elsewhere, and run by its full name."""
from __future__ import annotations

from conftest import ROOT, Run, run


def test_site_runs_from_an_installed_collection(served, tmp_path):
    built = run("ansible-galaxy", "collection", "build", "--output-path", str(tmp_path))
    assert built.returncode == 0, built.stdout + built.stderr
    artefact = next(tmp_path.glob("gb10-fleet-*.tar.gz"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "ansible.cfg").write_text(
        f"[defaults]\ncollections_path = {elsewhere / 'collections'}\n[inventory]\nunparsed_is_failed = True\n", encoding="utf-8"
    )
    there = {"cwd": elsewhere, "environment": {"ANSIBLE_CONFIG": str(elsewhere / "ansible.cfg")}}
    installed = run("ansible-galaxy", "collection", "install", str(artefact), "-p", "collections", "--offline", **there)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert (elsewhere / "collections/ansible_collections/gb10/fleet/playbooks/site.yml").exists()
    finished = Run(run("ansible-playbook", "gb10.fleet.site", "-i", str(ROOT / "inventories/lab"), **there))
    assert finished.status == 0, finished.text
    assert finished.changes == set()


def test_the_artefact_holds_no_link_and_no_tool_of_ours(tmp_path):
    built = run("ansible-galaxy", "collection", "build", "--output-path", str(tmp_path))
    assert built.returncode == 0, built.stdout + built.stderr
    names = run("tar", "-tzf", str(next(tmp_path.glob("*.tar.gz")))).stdout.splitlines()
    assert "playbooks/site.yml" in names
    for unwanted in ("ansible.cfg", "collections", "molecule", "Makefile", "inventories", ".venv", "lab"):
        assert not any(name == unwanted or name.startswith(f"{unwanted}/") for name in names)
