# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make two hosts of one machine with two GPUs: own name, processes, network, /etc/gb10, /run, /dev/shm, and one GPU each.

    hosts.py up      make both, with two wires between them that look like a Spark's rails
    hosts.py down    end them

/run/gb10-two-hosts/NAME.sh is then what Ansible calls in place of /bin/sh to run something on a host.

Needs root and the Python package pyroute2, and no tool but unshare and nsenter.
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = Path("/run/gb10-two-hosts")
HOSTS = ("spark-a", "spark-b")
RAILS = (("enp1s0f0np0", "192.168.100"), ("enP2p1s0f0np0", "192.168.101"))
MTU = 9000
PRIVATE = ("/etc/gb10", "/var/lib/gb10", "/var/cache/gb10", "/etc/systemd/system", "/etc/ansible")
NAMESPACES = ("--mount", "--uts", "--ipc", "--pid", "--net")


def mount(*arguments: str) -> None:
    """Mount something, or stop."""
    subprocess.run(["mount", *arguments], check=True)


def become_host(name: str) -> None:
    """Inside the namespaces: hide what is another host's, then stay."""
    number = HOSTS.index(name)
    home = HOME / name
    socket.sethostname(name)
    mount("-t", "tmpfs", "tmpfs", "/dev/shm")
    mount("-t", "sysfs", "sysfs", "/sys")
    mount("-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
    for device in Path("/dev").glob("nvidia[0-9]*"):
        if device.name != f"nvidia{number}":
            mount("--bind", "/dev/null", str(device))
    hosts = "127.0.0.1 localhost\n" + "".join(f"{RAILS[0][1]}.{10 + n} {host}\n" for n, host in enumerate(HOSTS))
    for path, text in (("/etc/hosts", hosts), ("/etc/resolv.conf", "")):
        if os.path.exists(path):
            own = home / Path(path).name
            own.write_text(text)
            mount("--bind", str(own), os.path.realpath(path))
    # systemd's tools, found before any other.
    for tool in ("systemctl", "journalctl"):
        (home / "bin").mkdir(exist_ok=True)
        (home / "bin" / tool).write_text(f"#!{sys.executable}\n" + (HERE / "units.py").read_text())
        (home / "bin" / tool).chmod(0o755)
    mount("--bind", str(home / "bin"), "/usr/local/sbin")
    for path in PRIVATE:
        own = home / path.strip("/").replace("/", "-")
        own.mkdir()
        Path(path).mkdir(parents=True, exist_ok=True)
        mount("--bind", str(own), path)
    with open(home / "ready", "w", encoding="ascii") as ready:
        # Last, since what is bound lies below it, and as on Ubuntu: nothing in it can be run.
        mount("-t", "tmpfs", "-o", "nosuid,nodev,noexec,mode=755", "tmpfs", "/run")
        ready.write("yes")
    # As PID 1 of its namespace it inherits what daemons leave behind, and no one waits for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        signal.pause()


def network_up(name: str, process: int) -> None:
    """The ends of the wires of one host, and its loopback."""
    from pyroute2 import NetNS

    number = HOSTS.index(name)
    with NetNS(f"/proc/{process}/ns/net") as inside:
        inside.link("set", index=inside.link_lookup(ifname="lo")[0], state="up")
        for netdev, network in RAILS:
            index = inside.link_lookup(ifname=netdev)[0]
            inside.addr("add", index=index, address=f"{network}.{10 + number}", prefixlen=24)
            inside.link("set", index=index, mtu=MTU, state="up")


def up() -> None:
    """Both hosts and the wires."""
    from pyroute2 import IPRoute

    for name in HOSTS:
        (HOME / name).mkdir(parents=True)
    processes = {}
    for name in HOSTS:
        outer = subprocess.Popen(
            ["unshare", *NAMESPACES, "--fork", "--mount-proc", sys.executable, str(HERE / "hosts.py"), "host", name],
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=open(HOME / f"{name}.log", "wb"), stderr=subprocess.STDOUT,
        )
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        end = time.monotonic() + 20
        ready = HOME / name / "ready"
        while not (children.read_text().split() and ready.exists() and ready.read_text()):
            if outer.poll() is not None or time.monotonic() > end:
                sys.exit(f"{name} did not come up: {(HOME / f'{name}.log').read_text()}")
            time.sleep(0.05)
        processes[name] = int(children.read_text().split()[0])
    with IPRoute() as outside:
        for netdev, _network in RAILS:
            outside.link("add", ifname="wire0", kind="veth", peer={"ifname": "wire1"})
            for name, wire in zip(HOSTS, ("wire0", "wire1")):
                index = outside.link_lookup(ifname=wire)[0]
                outside.link("set", index=index, ifname=netdev)
                outside.link("set", index=index, net_ns_pid=processes[name])
    for name, process in processes.items():
        network_up(name, process)
        shell = HOME / f"{name}.sh"
        shell.write_text(f"#!/bin/sh\nexec nsenter --target {process} {' '.join(NAMESPACES)} -- /bin/sh \"$@\"\n")
        shell.chmod(0o755)
    (HOME / "processes.json").write_text(json.dumps(processes))


def down() -> None:
    """End both: with its first process a PID namespace ends, and with it the network."""
    if (HOME / "processes.json").exists():
        for process in json.loads((HOME / "processes.json").read_text()).values():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
    shutil.rmtree(HOME, ignore_errors=True)


def main() -> None:
    """What the command line asks."""
    task = sys.argv[1]
    if task == "up":
        down()
        up()
    elif task == "down":
        down()
    elif task == "host":
        become_host(sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
