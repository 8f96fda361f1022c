"""Tests of whole playbooks on a lab pair: they boot it bare, and end it."""
from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.gb10.fleet.plugins.plugin_utils.report import ssh_command

ROOT = Path(__file__).resolve().parent.parent.parent
LAB = os.environ.get("GB10_LAB", "test")
ENVIRONMENT = {
    **os.environ,
    "GB10_LAB": LAB,
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
}


class Run:
    """A finished ansible-playbook: its exit status, its text, and what it changed."""

    def __init__(self, process: subprocess.CompletedProcess):
        self.status = process.returncode
        self.text = process.stdout + process.stderr

    @property
    def changes(self) -> set[tuple[str, str]]:
        """(task, host) of everything reported as changed, handlers left out."""
        found, task = set(), None
        for line in self.text.splitlines():
            if match := re.match(r"(TASK|RUNNING HANDLER) \[(.*)\]", line):
                task = match[2] if match[1] == "TASK" else None
            elif task and (match := re.match(r"changed: \[([^\]]+?)(?: -> [^\]]*)?\]", line)):
                found.add((task, match[1]))
        return found

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """Counters of the recap by host."""
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", self.text, re.MULTILINE)
        return {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counters)} for host, counters in rows}


def run(*command: str, cwd: Path = ROOT, environment: dict | None = None, limit: int = 900) -> subprocess.CompletedProcess:
    """Run a command from the checkout with the lab's inventory at hand."""
    return subprocess.run(
        command, cwd=cwd, env={**ENVIRONMENT, **(environment or {})}, capture_output=True, text=True, timeout=limit, check=False
    )


def playbook(*arguments: str, inventory: str = "lab", **options) -> Run:
    """Run ansible-playbook and keep its output for who looks into a failure."""
    finished = Run(run("ansible-playbook", "-i", inventory, *arguments, **options))
    log = ROOT / "tests/output" / f"site-{playbook.count:02d}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(finished.text, encoding="utf-8")
    playbook.count += 1
    return finished


playbook.count = 0


def hostvars() -> dict[str, dict]:
    """The lab's host variables."""
    return json.loads(run("ansible-inventory", "-i", "lab", "--list").stdout)["_meta"]["hostvars"]


def on_node(node: str, command: str) -> str:
    """Standard output of a shell script run as root on a node, or on both for `spark`."""
    variables = hostvars()
    said = ""
    for name in sorted(variables) if node == "spark" else [node]:
        process = subprocess.run(
            [*shlex.split(ssh_command(variables[name], name)), "sudo", "bash", "-s"],
            input=command, capture_output=True, text=True, timeout=300, check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        said += process.stdout
    return said


@pytest.fixture(scope="session")
def bare_lab():
    """A pair that has just been booted, nothing of ours on it; gone after the tests."""
    for state in ("absent", "present"):
        process = run("ansible-playbook", "playbooks/lab.yml", "-e", f"lab_name={LAB}", "-e", f"lab_state={state}")
        assert process.returncode == 0, process.stdout + process.stderr
    yield
    run("ansible-playbook", "playbooks/lab.yml", "-e", f"lab_name={LAB}", "-e", "lab_state=absent")


@pytest.fixture(scope="session")
def bare_state(bare_lab):
    """What the nodes hold before anything ran on them."""
    return {node: node_state(node) for node in ("spark-a", "spark-b")}


@pytest.fixture(scope="session")
def checked(bare_state):
    """site.yml --check --diff on bare nodes."""
    return playbook("site.yml", "--check", "--diff")


@pytest.fixture(scope="session")
def served(checked):
    """site.yml on bare nodes."""
    return playbook("site.yml")


# Written by the system while it runs, or by any ssh login: no trace of ours.
VOLATILE = (
    "/var/lib/systemd/", "/var/lib/gb10-lab", "/var/lib/dbus/", "/var/lib/NetworkManager/", "/var/cache/", "/home/spark/.ansible",
    "/root/.ansible", "/etc/passwd-", "/etc/shadow-", "/etc/group-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-",
    "/etc/.pwd.lock", "/etc/machine-id",
    # Started since our units want the network, and done; the next boot is without it.
    "systemd-networkd-wait-online.service", "network-online.target",
)


def node_state(node: str) -> dict[str, list[str]]:
    """Files, accounts, units, interfaces, mounts and processes of a node, as sorted lines."""
    commands = {
        "files": "find /etc /opt /usr/local /usr/lib/systemd /usr/lib/udev /var/lib /var/cache /srv /home /root /boot -xdev "
        "-printf '%p %y %m %u %g %l\\n'",
        "contents": "find /etc /usr/local /srv /home /root -xdev -path /srv/wheelhouse -prune -o -type f -exec sha256sum {} +",
        "accounts": "getent passwd; getent group",
        "units": "systemctl list-unit-files --no-legend --no-pager; systemctl list-units --all --no-legend --no-pager --plain "
        "--type=service,timer,socket,mount | awk '{print $1, $2, $4}'",
        "interfaces": "ip -o address show | awk '{print $2, $3, $4}'; ip -o link show | sed 's/^[0-9]*: //; s/ qlen.*//'; ip route",
        "processes": "ps -eo user:20,args --no-headers | grep -v -e '\\[' -e ansible -e 'ps -eo' -e ssh -e sftp -e 'bash -s' "
        "-e sudo -e '(sd-pam)' -e 'systemd --user'",
    }
    state = {}
    for name, command in commands.items():
        lines = on_node(node, command).splitlines()
        state[name] = sorted(
            {line for line in lines if not any(place in line for place in VOLATILE) and "session-" not in line and "user@" not in line}
        )
    return state


def lab_inventory(folder: Path, clusters: dict[str, list[str]], variables: dict[str, dict] | None = None) -> str:
    """An inventory of the running lab's nodes with other clusters or host variables; its path."""
    known = hostvars()
    inventory = {
        "spark": {
            "children": {
                name: {"hosts": {host: {**known[host], **(variables or {}).get(host, {})} for host in hosts}}
                for name, hosts in clusters.items()
            }
        }
    }
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"children": inventory}}), encoding="utf-8")
    return str(path)
