"""A lab of its own without an engine: boots in seconds, passes preflight, and every fault can be switched on in it."""
from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import yaml
from ansible_collections.gb10.fleet.plugins.plugin_utils.report import ssh_command

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "roles/lab/files/tiny-model"
TOOLCHAIN = yaml.safe_load((ROOT / "plugins/plugin_utils/toolchains.yml").read_text(encoding="utf-8"))["cpu"]
PATH = f"{ROOT / '.venv/bin'}:{os.environ.get('PATH', '')}"


class LightLab:
    """A lab by its name; `with LightLab("findings") as lab` boots it anew and ends it."""

    def __init__(self, name: str, nodes: int = 2):
        self.name = name
        self.count = nodes
        self.environment = {
            **os.environ, "PATH": PATH, "GB10_LAB": name, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORCE_COLOR": "0",
        }
        self.variables: dict[str, dict] = {}

    def __enter__(self) -> LightLab:
        self.end()
        self.playbook("playbooks/lab.yml", "-e", f"lab_nodes={self.count}", "-e", "lab_engine=false", inventory=None)
        listed = json.loads(self.run("ansible-inventory", "-i", "lab", "--list").stdout)
        self.variables = listed["_meta"]["hostvars"]
        self.leaders = {name: node["leader"] for name, node in json.loads(self.control("status"))["nodes"].items()}
        self.heads = [listed[cluster]["hosts"][0] for cluster in listed["spark"]["children"]]
        try:
            self.stock()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()

    def end(self) -> None:
        """No lab of this name, dead or alive."""
        self.playbook("playbooks/lab.yml", "-e", "lab_state=absent", inventory=None)

    def run(self, *command: str, limit: int = 600, format: str = "yaml") -> subprocess.CompletedProcess[str]:
        """A command from the checkout; its status is the caller's to judge."""
        environment = {**self.environment, "ANSIBLE_CALLBACK_RESULT_FORMAT": format}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False)

    def playbook(self, name: str, *arguments: str, inventory: str | None = "lab") -> str:
        """A playbook that must end well; what it said."""
        where = ("-i", inventory) if inventory else ("-e", f"lab_name={self.name}")
        finished = self.run("ansible-playbook", *where, name, *arguments)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    def as_user(self, node: str, script: str) -> str:
        """What a shell script says on a node, run by the login user over ssh."""
        command = [*shlex.split(ssh_command(self.variables[node], node)), "sh", "-eu", "-s"]
        finished = subprocess.run(command, input=script, capture_output=True, text=True, timeout=120, check=False)
        assert finished.returncode == 0, f"{node}: {script}\n{finished.stdout}{finished.stderr}"
        return finished.stdout

    def on_node(self, node: str, script: str, content: bytes = b"") -> str:
        """What a shell script says on a node, run as root, also where ssh or sudo are what is broken; `content` is its standard input."""
        enter = ["nsenter", f"--target={self.leaders[node]}", "--all"]
        finished = subprocess.run([*enter, "sh", "-euc", script], input=content, capture_output=True, timeout=120, check=False)
        assert finished.returncode == 0, f"{node}: {script}\n{finished.stdout.decode()}{finished.stderr.decode()}"
        return finished.stdout.decode()

    def control(self, *words: str) -> str:
        """labctl."""
        finished = self.run("roles/lab/files/labctl", "--lab", self.name, *words)
        assert finished.returncode == 0, f"{' '.join(words)}: {finished.stdout}{finished.stderr}"
        return finished.stdout

    def switch(self, node: str, values: dict[str, object]) -> None:
        """Change what a node's hardware answers."""
        if values:
            self.control("set", node, *(f"{key}={json.dumps(value)}" for key, value in values.items()))

    def stock(self) -> None:
        """Something at the places that preflight looks at: a wheelhouse by its names, and the tiny model."""
        machine = os.uname().machine
        platform, python = f"manylinux_2_28_{machine}", f"cp{TOOLCHAIN['python'].replace('.', '')}"
        versions = {"vllm": f"{TOOLCHAIN['vllm']}+cpu", "torch": f"{TOOLCHAIN['torch']}+cpu", "ray": TOOLCHAIN["ray"], "uv": "0.13.9"}
        tags = {"vllm": "cp38-abi3", "uv": "py3-none"}
        wheels = [f"{name}-{version}-{tags.get(name, f'{python}-{python}')}-{platform}.whl" for name, version in versions.items()]
        pins = "\n".join(f"{name}=={version} --hash=sha256:{'0' * 64}" for name, version in versions.items())
        script = f"mkdir -p /srv/wheelhouse; cd /srv/wheelhouse; touch {' '.join(wheels)}; cat >requirements.txt <<'.'\n{pins}\n.\n"
        model = subprocess.run(["tar", "-C", str(MODEL), "-c", "."], capture_output=True, check=True).stdout
        for node in self.variables:
            self.on_node(node, script)
        for node in self.heads:
            self.on_node(node, "mkdir -p /srv/models/tiny; tar -C /srv/models/tiny -x --no-same-owner", model)
