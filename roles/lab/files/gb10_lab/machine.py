# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node: its files, its stand-in hardware and its boot as a systemd-nspawn host."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path

from . import answers, host, layout, network, rdma, record, state, system

FILES = Path(__file__).resolve().parent.parent
STAND_INS = FILES / "stand_ins"
# Where each stand-in lies on a node: where the real tool does.
TOOL_FOLDERS = {"ibdev2netdev": "usr/sbin", "dmidecode": "usr/sbin", **dict.fromkeys(("all_gather_perf", "all_reduce_perf"), "usr/local/bin")}
LAB_FOLDER = "/usr/lib/gb10-lab"
# nspawn ends so when the node asked for a reboot.
REBOOT = 133
NETDEV_FILES = ("address", "carrier", "duplex", "flags", "ifindex", "mtu", "operstate", "speed", "statistics", "type", "uevent")
# A clock or a kernel module belongs to the host.
DROPPED_CAPABILITIES = "CAP_SYS_TIME,CAP_SYS_MODULE"


class Machine:
    """A node of a running lab. Made by the supervisor and by nobody else."""

    def __init__(self, lab: record.Lab, node: record.Node):
        self.lab = lab
        self.node = node
        self.folder = lab.folder / "nodes" / node.name
        self.root = self.folder / "root"
        self.shared = self.folder / "lab"
        self.layer = lab.layers / node.name
        self.namespace = self.folder / "netns"
        self.machine = f"{lab.name}.{node.name}"
        self.control_group = control_group(lab.name, node.name)
        self.cables = layout.cables(lab.topology, [other.name for other in lab.nodes])
        self.state = state.healthy(lab.name, node.name)
        self.tables: dict[str, list[str | None]] = {}
        self.written: dict[str, str] = {}
        self.process_id: int | None = None
        self.cards: tuple[layout.Function, ...] = ()

    # --- files ----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """The node's own layer and its shared folder; done once, before the first boot."""
        for folder in (self.root, self.shared, self.layer / "upper", self.layer / "work"):
            folder.mkdir(parents=True, exist_ok=True)
        # A node's device tree is a thousand small files, and /run need not be in memory.
        host.run("mount", "-t", "tmpfs", "-o", "mode=0755,size=64m", f"gb10-lab-{self.machine}", self.shared)
        layers = f"lowerdir={self.lab.image},upperdir={self.layer / 'upper'},workdir={self.layer / 'work'}"
        mounted = host.run("mount", "-t", "overlay", f"gb10-lab-{self.machine}", "-o", layers, self.root, check=False)
        if mounted.returncode:
            raise host.LabError(
                f"The lab's cache {self.lab.cache} cannot hold the disks of nodes ({mounted.stderr.strip().splitlines()[0]}); "
                "set GB10_LAB_CACHE to a folder on ext4, xfs or btrfs."
            )
        name = self.node.name
        host.write(self.root / "etc/hostname", f"{name}\n")
        host.write(self.root / "etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost ip6-loopback\n")
        host.write(self.root / "etc/resolv.conf", "")
        host.write(self.root / "etc/machine-id", layout.digest(self.lab.name, name, "machine")[:32] + "\n", 0o444)
        host.write(self.root / "etc/netplan/00-installer-config.yaml", self._netplan(), 0o600)
        self._credentials()
        self._stand_ins()
        self._system()
        if self.lab.model and self.node.name == self._head():
            shutil.copytree(self.lab.model, self.root / "srv/models/tiny")
        for folder in (
            "sys-class/infiniband", "sys-class/dmi/id", "sys-bus/pci/devices", "sys-module/nvidia", "sys-module/mlx5_core", "infiniband", "pci",
            "vm", "nvidia-module", "proc-driver/nvidia", "speed", "hang", "fail", "active_mtu",
        ):
            (self.shared / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy2(FILES / "image" / "init", self.shared / "init")
        shutil.copytree(FILES / "node_side", self.shared / "node_side", ignore=shutil.ignore_patterns("__pycache__"))
        for setting in Path("/proc/sys/vm").iterdir():
            with contextlib.suppress(OSError):
                host.write(self.shared / "vm" / setting.name, setting.read_text())

    def _head(self) -> str:
        return next(node.name for node in self.lab.nodes if node.cluster == self.node.cluster)

    def _netplan(self) -> str:
        return (
            f"network:\n  version: 2\n  renderer: {self.lab.renderer}\n  ethernets:\n    {layout.MANAGEMENT}:\n"
            f"      addresses: [{self.node.address}/{self.lab.network.split('/')[1]}]\n      dhcp4: false\n"
        )

    def _credentials(self) -> None:
        """The lab's key for `spark`, and host keys that the lab writes down itself: nobody trusts a first answer."""
        ssh = self.root / "home/spark/.ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        host.write(ssh / "authorized_keys", self.lab.key.with_suffix(".pub").read_text(), 0o600)
        for path in (ssh, ssh / "authorized_keys"):
            os.chown(path, 1000, 1000)
        key = self.root / "etc/ssh/ssh_host_ed25519_key"
        host.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.node.name, "-f", key)
        public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
        with open(self.lab.known_hosts, "a") as handle:
            handle.write(f"{self.node.address} {public}\n")

    def _stand_ins(self) -> None:
        for tool in sorted(STAND_INS.iterdir()):
            if tool.is_file():
                target = self.root / TOOL_FOLDERS.get(tool.name, "usr/bin") / tool.name
                shutil.copyfile(tool, target)
                target.chmod(0o755)

    def _system(self) -> None:
        """What DGX OS has on disk and the image has not: its kernel with its module, its settings, its packages' records."""
        for name, text in system.files().items():
            host.write(self.root / name, text, 0o755 if name.endswith(".sh") else 0o644)
        status = self.root / "var/lib/dpkg/status"
        host.write(status, status.read_text().rstrip("\n") + "\n\n" + system.package_records())
        for name, paths in system.package_files().items():
            host.write(self.root / "var/lib/dpkg/info" / f"{name}.list", paths)
            host.write(self.root / "var/lib/dpkg/info" / f"{name}.md5sums", "")

    # --- stand-in hardware ----------------------------------------------------------------------------------------

    def save_state(self) -> None:
        """Write the state file and everything that follows from it alone."""
        host.write(self.folder / "state.json", json.dumps(self.state, indent=2) + "\n", 0o600)
        wanted = answers.files(self.state, nic_present=bool(self.cards))
        for name, text in wanted.items():
            self._write_shared(name, text)
        # A kernel module that is not loaded has no files.
        self._drop_unwanted(("nvidia-module/", "proc-driver/", "hang/", "fail/", "active_mtu/"), wanted)
        for name, text in self.state["dmi"].items():
            mode = 0o400 if name.endswith(("_serial", "_uuid")) else 0o444
            self._write_shared(f"dmi/{name}", f"{text}\n", mode)
        release = self.root / "etc/dgx-release"
        text = answers.dgx_release(self.state["dgx_release"])
        if self.written.get("dgx-release") != text:
            host.write(release, text)
            self.written["dgx-release"] = text
        # Written in place: the running node has these very files bound over its own.
        self._write_in_place("cmdline", answers.command_line(self.state["proc"]))
        self._write_in_place("kernel", f"{self.state['proc']['kernel'] or os.uname().release}\n")
        self._write_in_place("swaps", answers.swaps(self.state["proc"]["swaps"]))
        self._save_meminfo()

    def _write_in_place(self, name: str, text: str) -> None:
        if self.written.get(name) != text:
            (self.shared / name).write_text(text)
            self.written[name] = text

    def _save_meminfo(self) -> None:
        """The node's own meminfo lies over the host's while the state changes something in it, in the running node too."""
        path, changes = self.shared / "meminfo", answers.memory_changes(self.state)
        bound, leader = path.exists(), self.leader()
        if changes:
            path.write_text(answers.meminfo(Path("/proc/meminfo").read_text(), changes))
        inside = ["nsenter", f"--target={leader}", "--all"]
        if leader is not None and changes and not bound:
            host.run(*inside, "mount", "--bind", f"{LAB_FOLDER}/meminfo", "/proc/meminfo")
        if leader is not None and bound and not changes:
            host.run(*inside, "umount", "/proc/meminfo")
        if not changes:
            path.unlink(missing_ok=True)

    def functions(self) -> tuple[layout.Function, ...]:
        """The NIC functions that the next boot finds. Without any cable a Spark takes the whole card off the PCI bus."""
        rails = self.state["rails"]
        plugged = any(self.cable(function) and rails[function.netdev]["cable"] for function in layout.FUNCTIONS)
        return layout.FUNCTIONS if plugged and self.state["rdma"]["present"] else ()

    def cable(self, function: layout.Function) -> layout.Cable | None:
        return network.cable_of(self.cables, self.node.name, function.cage)

    def _write_shared(self, name: str, text: str, mode: int = 0o444) -> None:
        if name not in self.written:
            host.write_new(self.shared / name, text, mode)
        elif self.written[name] != text:
            host.write(self.shared / name, text, mode)
        self.written[name] = text

    def _drop_unwanted(self, trees: tuple[str, ...], wanted: dict[str, str]) -> None:
        for name in [name for name in self.written if name.startswith(trees) and name not in wanted]:
            (self.shared / name).unlink(missing_ok=True)
            del self.written[name]

    def refresh_devices(self) -> None:
        """Bring the RDMA and PCI trees in step with the netdevs."""
        links = rdma.links_from_ip(network.addresses(self.namespace)) if self.namespace.exists() else {}
        functions = [function for function in self.cards if function.netdev in links and self.state["rdma"]["present"]]
        image = layout.guid(layout.mac(self.lab.name, self.node.name, layout.FUNCTIONS[0].netdev))
        virtual = self.state["rdma"]["virtual_functions"] if functions and self.state["rdma"]["driver"] else 0
        wanted: dict[str, str] = {f"pci/{name}": text for name, text in answers.other_pci_files(self.state["gpu"]).items()}
        for function in functions:
            rail = self.state["rails"][function.netdev]
            link = links[function.netdev]
            table = rdma.gid_table(link, self.tables.get(function.device, []), rail["gid_shift"], rail["gids"])
            self.tables[function.device] = table
            files = rdma.device_files(
                link, table, node_guid=layout.guid(link.mac), system_guid=image, firmware=self.state["rdma"]["firmware"],
                psid=self.state["rdma"]["psid"], node=self.node.name, link_gbps=rail["link_gbps"], counters=rail["counters"], link_layer=rail["link_layer"],
            )
            first = function == layout.FUNCTIONS[0]
            wanted.update({f"pci/{function.pci}/{name}": text for name, text in answers.pci_files(self.state, function, virtual if first else 0).items()})
            if self.state["rdma"]["driver"]:
                wanted.update({f"infiniband/{function.device}/{name}": text for name, text in files.items()})
                self._link(f"infiniband/{function.device}/device", f"../../../bus/pci/devices/{function.pci}")
                self._link(f"pci/{function.pci}/infiniband/{function.device}", f"../../../../../class/infiniband/{function.device}")
            # A veth has no phys_port_name and no PCI parent: the card's side of sysfs has both, and the rest from the veth.
            if self.state["rdma"]["port_names"]:
                wanted[f"pci/{function.pci}/net/{function.netdev}/phys_port_name"] = f"{function.cage}\n"
            for name in NETDEV_FILES:
                self._link(f"pci/{function.pci}/net/{function.netdev}/{name}", f"../../../../../../class/net/{function.netdev}/{name}")
        for number in range(virtual):
            wanted.update(self._virtual_function(links[layout.FUNCTIONS[0].netdev], number, image))
        for name, text in wanted.items():
            self._write_shared(name, text)
        self._drop_unwanted(("infiniband/", "pci/"), wanted)
        for function in self.cards:
            if function.netdev in links:
                self._write_in_place(f"speed/{function.netdev}", rdma.speed_file(links[function.netdev], self.state["rails"][function.netdev]["link_gbps"]))
        if not self.state["rdma"]["driver"]:
            for function in functions:
                host.remove_folder(self.shared / "pci" / function.pci / "infiniband", inside=self.shared)
        present = {name.split("/")[1] for name in wanted}
        for tree in ("infiniband", "pci"):
            for folder in (self.shared / tree).iterdir():
                if folder.name not in present:
                    host.remove_folder(folder, inside=self.shared)

    def _virtual_function(self, link: rdma.Link, number: int, image: str) -> dict[str, str]:
        """A virtual function of the first function whose network interface a container or a virtual machine has taken."""
        parent = layout.FUNCTIONS[0]
        address, device = f"0000:01:00.{2 + number}", f"{parent.device}v{number}"
        files = rdma.device_files(
            link, [], node_guid=layout.guid(link.mac, f"{number + 1:04x}"), system_guid=image, firmware=self.state["rdma"]["firmware"],
            psid=self.state["rdma"]["psid"], node=self.node.name,
        )
        self._link(f"infiniband/{device}/device", f"../../../bus/pci/devices/{address}")
        self._link(f"pci/{address}/physfn", f"../{parent.pci}")
        self._link(f"pci/{address}/infiniband/{device}", f"../../../../../class/infiniband/{device}")
        return {
            **{f"infiniband/{device}/{name}": text for name, text in files.items()},
            **{f"pci/{address}/{name}": text for name, text in answers.pci_files(self.state, parent).items() if not name.startswith("sriov")},
            f"pci/{address}/device": "0x101e\n",
        }

    def _link(self, name: str, target: str) -> None:
        path = self.shared / name
        if not path.is_symlink():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)

    # --- power ----------------------------------------------------------------------------------------------------

    def wire(self) -> None:
        """Fresh network cards: addresses and MTU that were set by hand do not outlive a reboot."""
        network.drop_namespace(self.namespace)
        network.make_namespace(self.namespace)
        self.cards = self.functions()
        network.plug_in(self.lab.switch_room, self.namespace, self.lab.name, self.node.name, self.node.index, self.cables, self.cards)
        self.tables.clear()
        self.save_state()
        self.refresh_devices()

    def command(self) -> list[str]:
        """The boot. nspawn does not restart a node by itself with --keep-unit: the supervisor does, with fresh cards."""
        words = [
            # Entered before nspawn mounts /sys: with --network-namespace-path the node would see the host's cards there.
            "nsenter", f"--net={self.namespace}",
            "systemd-nspawn", "--quiet", f"--directory={self.root}", f"--machine={self.machine}", "--register=no", "--keep-unit", "--capability=all",
            f"--drop-capability={DROPPED_CAPABILITIES}", "--console=pipe", "--resolv-conf=off", "--timezone=off",
            "--link-journal=no", f"--bind-ro={self.shared}:{LAB_FOLDER}",
        ]
        if self.lab.wheelhouse:
            words.append(f"--bind-ro={self.lab.wheelhouse}:/srv/wheelhouse")
        words.append(f"{LAB_FOLDER}/init")
        if host.has_systemd():
            return ["systemd-run", "--scope", "--quiet", "--collect", f"--unit={self.control_group}", "--property=Delegate=yes", *words]
        groups = host.cgroup_folders(self.control_group)
        for group in groups:
            group.mkdir(exist_ok=True)
        enter = "; ".join(f"echo $$ > {group}/cgroup.procs" for group in groups)
        return ["/bin/sh", "-c", f'{enter}; exec "$@"', "sh", *words]

    def leader(self) -> int | None:
        """The node's PID 1 as the host counts it."""
        if self.process_id is None:
            return None
        with contextlib.suppress(OSError, ValueError):
            for child in Path(f"/proc/{self.process_id}/task/{self.process_id}/children").read_text().split():
                for line in Path(f"/proc/{child}/status").read_text().splitlines():
                    if line.startswith("NSpid:") and line.split()[-1] == "1" and len(line.split()) > 2:
                        return int(child)
        return None

    def answers_ssh(self) -> bool:
        """sshd greets, and logins of ordinary users are no longer held back."""
        leader = self.leader()
        if leader is None or Path(f"/proc/{leader}/root/run/nologin").exists():
            return False
        try:
            with socket.create_connection((self.node.address, 22), timeout=1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def system_state(self) -> str:
        """What systemd says of itself in the node: starting, running, degraded ..."""
        leader = self.leader()
        if leader is None:
            return "off"
        result = host.run("nsenter", f"--target={leader}", "--all", "systemctl", "is-system-running", check=False, timeout=10)
        return result.stdout.strip() or "starting"

    def failed_units(self) -> list[str]:
        leader = self.leader()
        if leader is None:
            return []
        result = host.run(
            "nsenter", f"--target={leader}", "--all", "systemctl", "list-units", "--failed", "--plain", "--no-legend", check=False, timeout=10,
        )
        return [line.split()[0] for line in result.stdout.splitlines() if line.strip()]

    def cut_power(self) -> None:
        """As pulling the plug: the wires go dead first, so that the peers hear no farewell; then everything dies at once."""
        for port in [f"n{self.node.index}-mgmt", *(layout.port_name(self.node.index, function) for function in layout.FUNCTIONS)]:
            network.set_port(self.lab.switch_room, port, up=False)
        leader = self.leader()
        for process in (self.process_id, leader):
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def clear_away(self) -> None:
        """What a dead node leaves: its network cards, its control group, nspawn's notes."""
        clear_away(self.lab.name, self.node.name, self.namespace)
        self.process_id = None
        self.cards = ()
        self.refresh_devices()


def control_group(lab: str, node: str) -> str:
    return f"gb10-lab.{lab}.{node}"


def clear_away(lab: str, node: str, namespace: Path) -> None:
    group, machine = control_group(lab, node), f"{lab}.{node}"
    if host.has_systemd():
        host.run("systemctl", "kill", "--signal=KILL", f"{group}.scope", check=False)
    deadline = time.monotonic() + 10
    while host.cgroup_processes(group) and time.monotonic() < deadline:
        for process in host.cgroup_processes(group):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    host.remove_cgroup(group)
    network.drop_namespace(namespace)
    for note in (Path("/run/systemd/nspawn/propagate") / machine, Path("/run/systemd/nspawn/unix-export") / machine):
        for point in host.mounts_below(note):
            host.run("umount", point, check=False)
        if note.is_dir():
            host.remove_folder(note, inside=note.parent)
