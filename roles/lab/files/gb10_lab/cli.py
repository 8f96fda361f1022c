# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""labctl: starts and ends labs, and reaches into running ones."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import host, image, layout, machine, network, record, state, supervisor

FILES = Path(__file__).resolve().parent.parent
START_LIMIT = 60


def ask(lab: record.Lab, **request: object) -> object:
    """One request to the lab's supervisor, one answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(lab.socket))
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(connection.makefile().readline() or '{"error": "the supervisor ended"}')
    if "error" in answer:
        raise host.LabError(answer["error"])
    return answer["ok"]


def the_running_lab(name: str) -> record.Lab:
    lab = record.running(name)
    if lab is None:
        raise host.LabError(f"No lab {name} runs; start it with `make demo` or `ansible-playbook playbooks/lab.yml -e lab_name={name}`.")
    return lab


def up(options: argparse.Namespace) -> dict:
    """Start the lab, or find that it runs already as it is wanted."""
    name = layout.check_name(options.lab)
    names = layout.node_names(options.nodes)
    groups = layout.clusters(options.topology, names)
    for option, folder in (("wheelhouse", options.wheelhouse), ("model", options.model)):
        if folder and not Path(folder).is_dir():
            raise host.LabError(f"The {option} folder {folder} is not there; run the playbook with lab_engine=false or make it first.")
    wanted = {
        "lab_topology": options.topology, "lab_renderer": options.renderer, "lab_nodes": names, "lab_engine": bool(options.wheelhouse),
    }
    with host.locked(host.RUN / f"{name}.lock"):
        lab = record.running(name)
        if lab:
            other = [f"{key} is {value} and {wanted[key]} is wanted" for key, value in lab.settings().items() if value != wanted[key]]
            if other:
                raise host.LabError(f"Lab {name} runs already, but its {'; its '.join(other)}. End it first with -e lab_state=absent.")
            off = [node for node, found in ask(lab, do="status")["nodes"].items() if found["power"] == "off"]
            if not options.check:
                ask(lab, do="power_on", nodes=[])
            return {"changed": bool(off), "actions": [f"switch on {node}" for node in off], "lab": summary(lab)}
        actions = [f"boot {', '.join(names)} as lab {name} ({options.topology})"]
        if options.check:
            return {"changed": True, "actions": actions, "lab": None}
        clean(name)
        cache = host.cache_folder()
        if image.build(cache, options.renderer, options.mirror):
            actions.insert(0, f"make the image {image.folder(cache, options.renderer, options.mirror).name}")
            image.prune(cache, options.renderer, options.mirror, {other.image for other in running_labs()})
        with host.locked(host.RUN / ".lock"):
            host.raise_inotify_limit(len(names) + sum(len(other.nodes) for other in running_labs()))
            network_range = layout.management_range(name, network.ranges_in_use())
            lab = record.Lab(
                name=name, topology=options.topology, renderer=options.renderer, wheelhouse=options.wheelhouse, model=options.model,
                cache=str(cache), image=str(image.folder(cache, options.renderer, options.mirror)), interface=layout.host_interface(name),
                network=str(network_range), gateway=str(network_range.network_address + 1),
            )
            for cluster, members in groups.items():
                for member in members:
                    index = len(lab.nodes)
                    lab.nodes.append(record.Node(member, index, cluster, layout.node_address(network_range, index)))
            lab.control_paths.mkdir(parents=True, mode=0o700)
            lab.folder.chmod(0o700)
            host.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"lab {name}", "-f", lab.key)
            lab.save()
            network.build_switch_room(lab.switch_room, lab.interface, lab.network, lab.gateway, layout.cables(lab.topology, names))
        start_supervisor(lab)
        ask(lab, do="power_on", nodes=[])
        return {"changed": True, "actions": actions, "lab": summary(lab)}


def start_supervisor(lab: record.Lab) -> None:
    """A process of its own, that outlives the command and the session which started it."""
    log = lab.folder / "supervisor.log"
    command = ["env", f"GB10_LAB_PYTHON={sys.executable}", str(FILES / "labctl"), "--lab", lab.name, "supervise"]
    if host.has_systemd():
        host.run(
            "systemd-run", "--quiet", "--collect", f"--unit=gb10-lab.{lab.name}", "--property=KillMode=process",
            f"--property=StandardOutput=append:{log}", f"--property=StandardError=append:{log}", *command,
        )
    else:
        with open(log, "ab") as output:
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd="/")
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if lab.socket.exists() and host.is_held(lab.alive):
            return
        if lab.failure.exists():
            raise host.LabError(lab.failure.read_text())
        time.sleep(0.05)
    raise host.LabError(f"The lab's supervisor did not start within {START_LIMIT} s; see {log}.")


def running_labs() -> list[record.Lab]:
    names = [path.parent.name for path in sorted(host.RUN.glob("*/lab.json"))]
    return [lab for lab in map(record.running, names) if lab]


def summary(lab: record.Lab) -> dict:
    return {
        "name": lab.name, "folder": str(lab.folder), "network": lab.network,
        "nodes": {node.name: {"address": node.address, "cluster": node.cluster} for node in lab.nodes},
    }


def down(options: argparse.Namespace) -> dict:
    """End the lab and remove all that it or a dead one of its name left."""
    name = layout.check_name(options.lab)
    if options.check:
        there = traces(name)
        return {"changed": bool(there), "actions": [f"remove {trace}" for trace in there]}
    with host.locked(host.RUN / f"{name}.lock"):
        there = traces(name)
        lab = record.running(name)
        if lab:
            ask(lab, do="stop")
            deadline = time.monotonic() + 60
            while host.is_held(lab.alive) and time.monotonic() < deadline:
                time.sleep(0.05)
        clean(name)
        with host.locked(host.RUN / ".lock"):
            if not list(host.RUN.glob("*/lab.json")):
                host.restore_inotify_limit()
            (host.RUN / f"{name}.lock").unlink(missing_ok=True)
            if [path.name for path in host.RUN.iterdir()] == [".lock"]:
                (host.RUN / ".lock").unlink()
                with contextlib.suppress(OSError):
                    host.RUN.rmdir()
    return {"changed": bool(there), "actions": [f"remove {trace}" for trace in there]}


def traces(name: str) -> list[str]:
    """What of a lab is on this host."""
    found = [str(folder) for folder in (host.RUN / name, layers(name)) if folder.exists()]
    if Path("/sys/class/net", layout.host_interface(name)).exists():
        found.append(f"interface {layout.host_interface(name)}")
    return found


def layers(name: str) -> Path:
    lab = record.load(name)
    return lab.layers if lab else host.cache_folder() / "nodes" / name


def clean(name: str) -> None:
    """Remove a lab that no supervisor holds: processes, cables, mounts, folders."""
    folder = host.RUN / name
    own_layers = layers(name)
    nodes = {path.name for place in (folder / "nodes", own_layers) if place.is_dir() for path in place.iterdir()}
    for node in sorted(nodes):
        machine.clear_away(name, node, folder / "nodes" / node / "netns")
    for connection in (folder / "ssh" / "control").glob("*"):
        host.run("ssh", "-O", "exit", "-o", f"ControlPath={connection}", "lab", check=False)
    network.remove_host_interface(layout.host_interface(name))
    network.drop_namespace(folder / "switch-room")
    if folder.exists():
        host.remove_folder(folder, inside=host.RUN)
    if own_layers.exists():
        host.remove_folder(own_layers, inside=own_layers.parent.parent)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="labctl", description="Start, end and disturb a lab of Sparks on this machine.")
    parser.add_argument("--lab", default=record.chosen_name(), help="name of the lab (default: $GB10_LAB, else pair)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    one = command("up", "Boot the lab's nodes; nothing changes when they run already.")
    one.add_argument("--nodes", default="2", help="how many, or their names with commas")
    one.add_argument("--topology", default="pair", choices=layout.TOPOLOGIES)
    one.add_argument("--renderer", default="networkd", choices=layout.RENDERERS)
    one.add_argument("--wheelhouse", default="", help="folder to bind at /srv/wheelhouse on each node")
    one.add_argument("--model", default="", help="folder to copy to /srv/models/tiny on each head")
    one.add_argument("--mirror", default="", help="where the image's packages come from (default: the host's own)")
    one.add_argument("--check", action="store_true", help="say what would be done, do nothing")
    one = command("down", "End the lab and remove everything of it.")
    one.add_argument("--check", action="store_true", help="say what would be done, do nothing")
    command("packages", "Print the host packages that the lab needs and this host lacks.")
    command("status", "Print the nodes and how they are.")
    for name, text in (("power-off", "Pull the plug of nodes."), ("power-on", "Switch nodes on and wait for ssh.")):
        command(name, text).add_argument("nodes", nargs="+", metavar="NODE")
    for name, text in (("cut", "Pull a rail's cable."), ("mend", "Put a rail's cable back.")):
        one = command(name, text)
        one.add_argument("node", metavar="NODE")
        one.add_argument("rail", metavar="RAIL", choices=[function.netdev for function in layout.FUNCTIONS])
    one = command("set", "Change a node's state file: what its hardware answers.")
    one.add_argument("node", metavar="NODE")
    one.add_argument("values", nargs="+", metavar="KEY=VALUE")
    one = command("reset", "Put a node's state file back to a healthy Spark's: the keys named, or all.")
    one.add_argument("node", metavar="NODE")
    one.add_argument("keys", nargs="*", metavar="KEY")
    command("get", "Print a node's state file.").add_argument("node", metavar="NODE")
    one = command("switch", "Run a command in the room where the other ends of all cables are.")
    one.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    command("supervise", "Be the lab's supervisor (started by `up`).")
    options = parser.parse_args(argv)

    try:
        host.require_root_on_linux()
        answer = perform(options)
    except (host.LabError, layout.LayoutError, state.StateError) as error:
        print(f"labctl: {error}", file=sys.stderr)
        return 1
    if answer is not None:
        print(json.dumps(answer, indent=2), flush=True)
    return 0


def perform(options: argparse.Namespace) -> object:
    if options.command == "supervise":
        return supervisor.main(options.lab)
    if options.command == "packages":
        return host.missing_packages()
    if options.command in ("up", "down"):
        host.require_tools()
        return up(options) if options.command == "up" else down(options)
    lab = the_running_lab(options.lab)
    if options.command == "status":
        return ask(lab, do="status")
    if options.command in ("power-off", "power-on"):
        return ask(lab, do=options.command.replace("-", "_"), nodes=options.nodes)
    if options.command in ("cut", "mend"):
        ask(lab, do="set", node=options.node, values={f"rails.{options.rail}.cable": options.command == "mend"})
        return None
    if options.command == "set":
        values = {}
        for word in options.values:
            key, equals, value = word.partition("=")
            if not equals:
                raise host.LabError(f"{word!r} is not KEY=VALUE.")
            values[key] = state.convert(value)
        ask(lab, do="set", node=options.node, values=values)
        return None
    if options.command == "reset":
        ask(lab, do="reset", node=options.node, keys=options.keys)
        return None
    if options.command == "get":
        return ask(lab, do="get", node=options.node)
    os.execvp("nsenter", ["nsenter", f"--net={lab.switch_room}", *options.words])
