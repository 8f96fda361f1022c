"""Faults that can be switched on in a light lab, and the findings that they must give.

A fault is switched on by what the node's hardware answers (`state`, put back by itself) or by a change of its files (`on` and
`off`, run as root). Faults of one batch are on at the same time and do not hide each other.
"""
from __future__ import annotations

import shlex
from dataclasses import dataclass, field

A, B = "spark-a", "spark-b"
RAIL, TWIN = "enp1s0f0np0", "enP2p1s0f0np0"
SECOND, SECOND_TWIN = "enp1s0f1np1", "enP2p1s0f1np1"


@dataclass
class Fault:
    """`nodes` have the finding; none: it is the cluster's or the fleet's as a whole."""

    finding: str
    nodes: tuple[str, ...]
    state: dict[str, dict[str, object]] = field(default_factory=dict)
    on: dict[str, str] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    variables: dict[str, object] = field(default_factory=dict)


def hardware(finding: str, node: str, **values: object) -> Fault:
    """A fault of one node's state; in the keys, two underscores stand for a point."""
    return Fault(finding, (node,), state={node: {key.replace("__", "."): value for key, value in values.items()}})


def files(finding: str, node: str, on: str, off: str, **more: object) -> Fault:
    """A fault in one node's files."""
    return Fault(finding, (node,), on={node: on}, off={node: off}, **more)


def written(finding: str, node: str, path: str, text: str, **more: object) -> Fault:
    """A fault that is the content of one file; what was there comes back."""
    kept = f"/var/tmp/kept{path.replace('/', '-')}"
    on = f"mkdir -p {path.rpartition('/')[0]}; [ ! -e {path} ] || cp -a {path} {kept}; cat >{path} <<'.'\n{text.rstrip()}\n.\n"
    return files(finding, node, on, f"rm -f {path}; [ ! -e {kept} ] || mv {kept} {path}\n", **more)


def edited(finding: str, node: str, path: str, expression: str, **more: object) -> Fault:
    """A fault that sed makes in one file."""
    kept = f"/var/tmp/kept{path.replace('/', '-')}"
    return files(finding, node, f"cp -a {path} {kept}; sed -i {shlex.quote(expression)} {path}\n", f"mv {kept} {path}\n", **more)


def program(path: str) -> str:
    """A program that does nothing, where another one's would lie."""
    return f"printf '#!/bin/sh\\n' >{path}; chmod 0755 {path}\n"


@dataclass
class Input:
    """A fault of the inventory: a cluster of its own with it. Its hosts stand for the lab's nodes in turn."""

    finding: str
    group: dict[str, object] = field(default_factory=dict)
    hosts: tuple[dict[str, object], ...] = ({}, {})
    # Which of the hosts has the finding.
    at: int = 0

    @property
    def cluster(self) -> str:
        return self.finding.partition(".")[2]

    def host(self, number: int) -> str:
        return f"{self.cluster.replace('_', '-')}-{number}"


def rails(first: str, second: str) -> dict[str, object]:
    """The addresses of a node's rails."""
    return {"spark_rail_addresses": {RAIL: first, TWIN: second}}


CLOSED = {"ansible_host": "127.0.0.1", "ansible_port": 1}
# `management` becomes the lab's management network, `profiles` a folder with the profiles below.
INPUTS = [
    Input("plan.node_not_looked_at", hosts=({}, CLOSED), at=1),
    Input("plan.not_shared", hosts=({"spark_mtu": 9000}, {"spark_mtu": 4200}), at=1),
    Input("plan.toolchain", {"spark_toolchain": "nosuch"}),
    Input("plan.profile_missing", {"spark_profile": ""}),
    Input("plan.profile_unknown", {"spark_profile": "nosuch"}),
    Input("plan.profile", {"spark_profile": "broken", "spark_profiles": "profiles"}),
    Input("plan.profile_toolchain", {"spark_profile": "elsewhere", "spark_profiles": "profiles"}),
    Input("plan.tensor_parallel", {"spark_tensor_parallel": 3}),
    Input("plan.cluster_of_one", hosts=({},)),
    Input("plan.mtu", {"spark_mtu": 100}),
    Input("plan.mtu_low", {"spark_mtu": 1500}),
    Input("plan.path", {"spark_wheelhouse": "wheels"}),
    Input("plan.port", {"spark_port": 80}),
    Input("plan.listen", {"spark_listen": "everywhere"}),
    Input("plan.subnets", {"spark_rail_subnets": ["192.168.100.0/24", "nonsense"]}),
    Input("plan.subnets_overlap", {"spark_rail_subnets": ["192.168.0.0/16", "192.168.101.0/24"]}),
    Input("plan.subnet_full", {"spark_rail_subnets": ["192.168.100.0/30", "192.168.101.0/30"], "spark_tensor_parallel": 3}, ({}, {}, {}), 2),
    Input("plan.subnet_in_use", {"spark_rail_subnets": ["management", "192.168.101.0/24"]}),
    Input("plan.rail_missing", hosts=({"spark_rail_addresses": {"eth7": "192.168.100.10/24"}}, {})),
    Input("plan.cage_conflict", hosts=({"spark_cage": "p1", **rails("192.168.100.10/24", "192.168.101.10/24")}, {})),
    Input("plan.twin_missing", hosts=({"spark_rail_addresses": {RAIL: "192.168.100.10/24"}}, {})),
    Input("plan.address", hosts=(rails("192.168.100.0/24", "192.168.101.10/24"), {})),
    Input("plan.address_out_of_subnet", hosts=(rails("192.168.100.10/24", "192.168.101.10/24"), rails("192.168.100.11/24", "10.9.9.9/24")), at=1),
    Input("plan.address_twice", hosts=(rails("192.168.100.10/24", "192.168.101.10/24"), rails("192.168.100.10/24", "192.168.101.11/24")), at=1),
    Input(
        "plan.no_rail_to_peer", {"spark_tensor_parallel": 3},
        (
            rails("192.168.100.10/24", "192.168.101.10/24"),
            {"spark_rail_addresses": {
                RAIL: "192.168.100.11/24", TWIN: "192.168.101.11/24", SECOND: "192.168.102.11/24", SECOND_TWIN: "192.168.103.11/24",
            }},
            rails("192.168.102.12/24", "192.168.103.12/24"),
        ),
    ),
    Input("plan.nccl_environment", {"spark_nccl_environment": {"NCCL_IB_GID_INDEX": "3"}}),
]
# A broken profile, and one that no CPU serves.
PROFILES = {
    "broken": "name: broken\nmodel: 7\n",
    "elsewhere": "name: elsewhere\nmodel: tiny\nserved_name: tiny\ntensor_parallel: 2\ntoolchains: [cuda-13.0]\nengine: {enforce-eager: true}\n"
    "smoke:\n  messages:\n    - role: user\n      content: What are you?\n  expect: a model\n  max_tokens: 8\n",
}
# Shown by inventories of their own.
INVENTORIES = ("plan.no_cluster", "plan.no_facts", "plan.host_in_no_cluster", "plan.host_in_two_clusters", "rdma.no_cable")


# --- what the modules of the rails find -------------------------------------------------------------------------------

PLANNED = {
    A: [(RAIL, "rocep1s0f0", "192.168.100.10"), (TWIN, "roceP2p1s0f0", "192.168.101.10")],
    B: [(RAIL, "rocep1s0f0", "192.168.100.11"), (TWIN, "roceP2p1s0f0", "192.168.101.11")],
}
RAILS_UP = {
    node: "".join(f"ip link set {netdev} up mtu 9000; ip address replace {address}/24 dev {netdev}\n" for netdev, _device, address in planned)
    for node, planned in PLANNED.items()
}
RAILS_DOWN = {
    node: "".join(f"ip address flush dev {netdev} scope global; ip link set {netdev} mtu 1500\n" for netdev, _device, _address in planned)
    for node, planned in PLANNED.items()
}
RAILS = [
    files("rail.interface", A, f"ip link set {RAIL} mtu 1500", f"ip link set {RAIL} mtu 9000"),
    hardware("rail.link_down", A, **{f"rails__{RAIL}__cable": False}),
    hardware("rail.device", A, tools__fail={"ibv_devinfo": "Failed to get IB devices list: Function not implemented"}),
    hardware("rail.active_mtu", A, **{f"rails__{TWIN}__active_mtu": 1024}),
    hardware("rail.jumbo", A, **{f"rails__{TWIN}__middle_mtu": 1500}),
    files("rail.missing", A, f"ip link set {TWIN} down; ip link set {TWIN} name away",
          f"ip link set away name {TWIN}; ip link set {TWIN} up; {RAILS_UP[A]}"),
    Fault("rail.peer", (A,), on={B: "ip address flush dev enp1s0f0np0 scope global"}, off={B: RAILS_UP[B]}),
]
# --- what the hardware answers, and what lies on the disk -------------------------------------------------------------

DRIVER = {"gpu__driver": "580.173.02", "gpu__library": "580.173.02", "gpu__gsp_firmware": "580.173.02"}
KERNEL = "6.17.0-1029-nvidia"
PIN = "NCCL_IB_GID_INDEX=3"
UNIT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"


def unit(finding: str, node: str, name: str, prepare: str = "", **more: object) -> Fault:
    """A fault that is an active unit."""
    path = f"/etc/systemd/system/{name}"
    on = f"{prepare}cat >{path} <<'.'\n{UNIT}.\nsystemctl daemon-reload; systemctl start {name}\n"
    return files(finding, node, on, f"systemctl stop {name}; rm {path}; systemctl daemon-reload\n", **more)


def each(command: str) -> str:
    """A command for each port of the card."""
    return "".join(f"{command.format(netdev)}\n" for netdev in (RAIL, TWIN, SECOND, SECOND_TWIN))


def small_disk(finding: str, node: str, path: str, options: str) -> Fault:
    """A file system of its own at a place where much is to be put."""
    return files(
        finding, node, f"[ -d {path} ] || {{ mkdir -p {path}; touch /var/tmp/made{path.replace('/', '-')}; }}; mount -t tmpfs -o {options} tmpfs {path}\n",
        f"umount {path}; [ ! -e /var/tmp/made{path.replace('/', '-')} ] || {{ rmdir {path}; rm /var/tmp/made{path.replace('/', '-')}; }}\n",
    )


CDI_OFF = f"{program('/usr/bin/dockerd')}mkdir -p /etc/docker; printf '{{\"features\": {{\"cdi\": false}}}}\\n' >/etc/docker/daemon.json\n"
UPGRADES = (
    'APT::Periodic::Update-Package-Lists "1";\nAPT::Periodic::Unattended-Upgrade "1";\n'
    'Unattended-Upgrade::Allowed-Origins { "Ubuntu:noble-security"; "NVIDIA:noble"; };\n'
)
TWO_KEYS = {
    "/etc/apt/sources.list.d/cuda.list":
        "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] https://developer.download.nvidia.invalid/sbsa/ /",
    "/etc/apt/sources.list.d/second.list": "deb [signed-by=/usr/share/keyrings/other.gpg] https://developer.download.nvidia.invalid/sbsa/ /",
}
HOLD = "systemd-run --quiet --unit=holder python3 -c 'import fcntl, time; file = open(\"/var/lib/dpkg/lock-frontend\", \"w\");" \
    " fcntl.lockf(file, fcntl.LOCK_EX); time.sleep(900)'; sleep 0.3\n"


def driver(finding: str, node: str, version: str) -> Fault:
    """Another driver, in all its parts."""
    return hardware(finding, node, gpu__driver=version, gpu__library=version, gpu__gsp_firmware=version)


LISTENER = "systemd-run --quiet --unit=squatter python3 -m http.server {port}; sleep 0.5\n"
RELEASE = (
    "mkdir -p /opt/gb10/releases/{key}/lib/python3.11/site-packages/nvidia/nccl/lib\n"
    "printf '{{\"key\": \"{key}\", \"vllm\": \"0.32.0\", \"torch\": \"2.13.0\", \"ray\": \"2.60.0\"}}\\n' >/opt/gb10/releases/{key}/release.json\n"
    "cp /bin/{library} /opt/gb10/releases/{key}/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
    "ln -s releases/{key} /opt/gb10/current\n"
)
NO_RELEASE = "rm -r /opt/gb10\n"
MEMORY = {"MemTotal": 127500000, "MemFree": 5000000, "MemAvailable": 110000000, "Cached": 95000000, "Buffers": 0, "Shmem": 0}
OLD_RELEASE = [["DGX_NAME", "DGX Spark"], ["DGX_PRETTY_NAME", "NVIDIA DGX Spark"], ["DGX_SWBUILD_VERSION", "7.2.3"], ["DGX_OTA_VERSION", "7.4.0"]]
RAIL_ADDRESSES = {
    node: "".join(f"ip address replace {address}/24 dev {netdev}\n" for netdev, _device, address in planned) for node, planned in PLANNED.items()
}
BATCHES: dict[str, list[Fault]] = {
    "GPU, rails, disk and services": [
        hardware("gpu.needs_reset", A, gpu__state="needs_reset"),
        hardware("driver.mismatch", B, gpu__state="driver_mismatch", gpu__library="580.159.03"),
        hardware("rail.slow", A, **{f"rails__{RAIL}__link_gbps": 100}),
        hardware("pcie.width", A, **{f"rails__{TWIN}__pcie__width": 2}),
        hardware("pcie.speed", B, **{f"rails__{RAIL}__pcie__speed": "16.0 GT/s PCIe"}),
        hardware("rdma.counters", A, **{f"rails__{RAIL}__counters": {"symbol_error": 120000}}),
        hardware("rdma.virtual_functions", B, rdma__virtual_functions=1),
        hardware("facts.late", A, tools__hang=["fwupdmgr"]),
        files("kernel.next_boot_no_module", A, f"mv /lib/modules/{KERNEL}/kernel/nvidia-580-open /var/tmp/\n",
              f"mv /var/tmp/nvidia-580-open /lib/modules/{KERNEL}/kernel/\n"),
        Fault("kernel.next_boot_differs", (A, B)),
        Fault("cluster.next_kernel", (), on={B: f"cp -a /boot/grub/grub.cfg /var/tmp/; sed -i s/{KERNEL}/6.17.0-1014-nvidia/ /boot/grub/grub.cfg\n"},
              off={B: "mv /var/tmp/grub.cfg /boot/grub/grub.cfg\n"}),
        edited("kernel.interrupted", A, "/var/lib/dpkg/status", "/^Package: nvidia-utils-580$/,/^$/ s/^Status: .*/Status: install ok half-configured/"),
        edited("driver.packages_differ", B, "/var/lib/dpkg/status", "/^Package: nvidia-modprobe$/,/^$/ s/^Version: .*/Version: 610.57.04-1ubuntu1/"),
        files("kernel.held", B, "echo nvidia-driver-580-open hold | dpkg --set-selections\n",
              "echo nvidia-driver-580-open install | dpkg --set-selections\n"),
        Fault("cluster.held", ()),
        files("kernel.pending_reboot", B, "touch /run/reboot-required; echo linux-image >/run/reboot-required.pkgs\n", "rm /run/reboot-required*\n"),
        hardware("memory.swap", A, proc__swaps=[{"path": "/swap.img", "type": "file", "size_kb": 16777212, "used_kb": 13000000}]),
        files("memory.swappiness", A, "cp /proc/sys/vm/swappiness /var/tmp/; echo 60 >/proc/sys/vm/swappiness\n",
              "cat /var/tmp/swappiness >/proc/sys/vm/swappiness; rm /var/tmp/swappiness\n"),
        hardware("memory.page_cache", A, meminfo=MEMORY),
        hardware("memory.less", B, meminfo={"MemTotal": 115000000}),
        # Limits are those of the login, so that kept connections must end.
        files("memory.memlock", B, "echo '* - memlock 64' >/etc/security/limits.d/95-low.conf; pkill -x -u spark sshd || true\n",
              "rm /etc/security/limits.d/95-low.conf; pkill -x -u spark sshd || true\n"),
        small_disk("disk.space", A, "/opt/gb10", "size=64m"),
        small_disk("disk.inodes", B, "/var/lib/gb10", "nr_inodes=64"),
        files("environment.visible_devices", A, "echo CUDA_VISIBLE_DEVICES=1 >>/etc/environment\n", "sed -i /CUDA_VISIBLE_DEVICES/d /etc/environment\n"),
        written("environment.nccl", A, "/etc/profile.d/nccl.sh", "export NCCL_DEBUG=WARN\n"),
        written("environment.nccl_wrong", B, "/etc/nccl.conf", "NCCL_IB_CUDA_SUPPORT=1\nNCCL_IB_HCA=mlx5_7\n"),
        written("environment.preload", B, "/etc/profile.d/preload.sh", "export LD_PRELOAD=/opt/nccl/lib/libnccl.so.2\n"),
        files("toolchain.stray", A, program("/usr/local/bin/vllm"), "rm /usr/local/bin/vllm\n"),
        files("toolchain.wheelhouse", B, "mv /srv/wheelhouse/ray-* /var/tmp/\n", "mv /var/tmp/ray-* /srv/wheelhouse/\n"),
        files("model.source", A, "ln -s /nowhere /srv/models/tiny/more.safetensors\n", "rm /srv/models/tiny/more.safetensors\n"),
        files("model.foreign", A, "mkdir -p /var/lib/gb10/models/tiny; echo x >/var/lib/gb10/models/tiny/config.json\n", "rm -r /var/lib/gb10\n"),
        files("services.cdi", A, CDI_OFF, "rm -r /usr/bin/dockerd /etc/docker\n"),
        unit("services.earlyoom", A, "earlyoom.service"),
        unit("services.firewall", B, "nftables.service"),
        files("services.apt_lock", B, HOLD, "systemctl stop holder\n"),
        files("services.port_taken", A, LISTENER.format(port=8000), "systemctl stop squatter\n"),
        files("services.unattended", A,
              program("/usr/bin/unattended-upgrade") + "systemctl --quiet unmask apt-daily-upgrade.timer; systemctl start apt-daily-upgrade.timer\n",
              "rm /usr/bin/unattended-upgrade; systemctl stop apt-daily-upgrade.timer; systemctl --quiet mask apt-daily-upgrade.timer\n"),
        written("services.unattended", A, "/etc/apt/apt.conf.d/50unattended-upgrades", UPGRADES),
        files("services.remove_ipc", B, "mkdir -p /home/spark/.local/bin; " + program("/home/spark/.local/bin/vllm"), "rm -r /home/spark/.local\n"),
        files("services.sshd_oom", B, "for process in $(pgrep -x sshd); do echo 0 >/proc/$process/oom_score_adj; done\n", "systemctl restart ssh\n"),
        *(written("apt.conflict", B, path, text) for path, text in TWO_KEYS.items()),
        written("facts.not_understood", A, "/etc/apt/sources.list.d/odd.list", "this is no source"),
        files("facts.denied", A, "echo >/etc/apt/sources.list.d/secret.list; chmod 600 /etc/apt/sources.list.d/secret.list\n",
              "rm /etc/apt/sources.list.d/secret.list\n"),
        written("names.own", A, "/etc/hosts", "127.0.0.1 localhost\n203.0.113.9 spark-a"),
        written("names.peer", B, "/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 spark-b\n203.0.113.9 spark-a"),
        Fault("cluster.machine_id", (), on={
            node: "cp -a /etc/machine-id /var/tmp/; echo 0123456789abcdef0123456789abcdef >/etc/machine-id\n" for node in (A, B)
        }, off={node: "mv /var/tmp/machine-id /etc/machine-id\n" for node in (A, B)}),
        Fault("settings.silence", (), variables={"spark_silenced_findings": {"no.such_finding": "because"}}),
        Fault("settings.known", (), variables={"spark_known_bad": [{"id": "site.row"}]}),
    ],
    "versions": [
        hardware("gpu.degraded", A, gpu__inforom="corrupted"),
        hardware("gpu.gsp_mismatch", A, gpu__gsp_firmware="580.126.09"),
        hardware("gpu.busy", A, gpu__processes=[{"pid": 6330, "name": "sglang::scheduler", "used_mib": 96073}]),
        hardware("kernel.panics", A, proc__kernel="6.17.0-1008-nvidia"),
        hardware("kernel.kho", B, proc__kernel="7.0.0-1019-nvidia"),
        Fault("cluster.kernel", ()),
        driver("driver.branch", B, "590.48.01"),
        Fault("cluster.driver", ()),
        Fault("cluster.cuda", (), state={B: {"gpu.cuda": "13.1"}}),
        Fault("cluster.vbios", (), state={B: {"gpu.vbios": "9A.0B.2D.00.00"}}),
        hardware("nic_firmware.floor", B, rdma__firmware="28.42.1000"),
        Fault("cluster.nic_firmware", ()),
        Fault("cluster.psid", (), state={B: {"rdma.psid": "MT_0000000838"}}),
        Fault("cluster.bios", (), state={B: {"dmi.bios_version": "5.36_0ACUM018"}}),
        Fault("cluster.firmware", (), state={B: {"firmware.0.Version": "3.5.6"}}),
        hardware("dgx_os.february", B, dgx_release=OLD_RELEASE),
        Fault("cluster.dgx_os", ()),
        Fault("cluster.os", (),
              on={B: "cp -a /etc/os-release /var/tmp/; sed -i s/12/13/ /etc/os-release\n"}, off={B: "mv /var/tmp/os-release /etc/os-release\n"}),
        hardware("firmware.staged", A, firmware__1__UpdateState=4),
        Fault("firmware.bios_differs", (A,)),
        hardware("firmware.failed", A, firmware__2__UpdateState=3, firmware__2__UpdateError="battery level is too low"),
        hardware("firmware.available", A, firmware__3__Releases=[{"Version": "20250507", "Flags": ["is-upgrade"]}]),
        hardware("facts.failed", A, tools__fail={"ibv_devinfo": "Failed to get IB devices list: Function not implemented"}),
        Fault("cluster.release", (),
              on={A: RELEASE.format(key="cpu-0.32.0-000000000000", library="true"),
                  B: RELEASE.format(key="cpu-0.32.0-111111111111", library="false")},
              off={A: NO_RELEASE, B: NO_RELEASE}),
        Fault("cluster.nccl", ()),
    ],
    "no GPU": [
        hardware("gpu.absent", A, gpu__state="no_device"),
        hardware("gpu.other", B, gpu__name="NVIDIA H200"),
        driver("driver.newer_branch", B, "610.57.04"),
        hardware("kernel.hotplug", A, proc__kernel=KERNEL),
        hardware("rdma.no_driver", A, rdma__driver=False),
        hardware("rdma.no_subnet_manager", B, **{f"rails__{RAIL}__link_layer": "InfiniBand"}),
        hardware("bios.narrow_link", A, dmi__sys_vendor="MS-C931", dmi__product_name="EdgeXpert", dmi__bios_date="12/11/2025"),
        files("plan.rail_is_management", B, f"ip route add default dev {TWIN}\n", "ip route del default\n"),
    ],
    "another machine": [
        hardware("node.other_machine", A, gpu__present=False, dgx_release=[["DGX_NAME", "DGX Station"]]),
        driver("driver.gsp_timeout", B, "580.173.02"),
        files("node.refused", B, "chmod 700 /srv/wheelhouse\n", "chmod 755 /srv/wheelhouse\n"),
    ],
    "drivers": [
        driver("driver.floor", A, "580.82.07"),
        driver("driver.not_permitted", B, "580.159.03"),
        files("node.become", B, "mv /etc/sudoers.d/spark /var/tmp/\n", "mv /var/tmp/spark /etc/sudoers.d/\n"),
    ],
    "addresses of rails": [
        Fault("rail.no_address", (B,), on={A: RAIL_ADDRESSES[A], B: f"ip address replace 192.168.100.11/24 dev {RAIL}\n"}, off=RAILS_DOWN),
        Fault("mtu.low", (A, B)),
        files("mtu.twins_differ", A, f"ip link set {RAIL} mtu 9000\n", f"ip link set {RAIL} mtu 1500\n"),
        Fault("mtu.rail_differs", ()),
        hardware("mtu.active", B, **{f"rails__{RAIL}__active_mtu": 256}),
        Fault("rail.gid_index", (), state={A: {f"rails.{RAIL}.gid_shift": 1}}),
        hardware("rail.no_gid", A, **{f"rails__{TWIN}__gids": False}),
    ],
    "twins": [
        Fault("rail.twins_one_subnet", (A,), on={
            A: f"ip address replace 192.168.100.10/24 dev {RAIL}; ip address replace 192.168.100.12/24 dev {TWIN}\n",
            B: f"ip address replace 192.168.100.10/24 dev {RAIL}\n",
        }, off=RAILS_DOWN),
        Fault("names.address_twice", ()),
        hardware("plan.cage_missing", B, rdma__port_names=False, rdma__psid=""),
    ],
    "cables and cards": [
        Fault("plan.link_down", (A,), state={A: {f"rails.{RAIL}.cable": False, f"rails.{TWIN}.cable": False}}),
        hardware("plan.no_rdma_device", B, rdma__present=False),
    ],
    "ports that are down": [
        files("plan.cage_chosen", A, each("ip link set {} down"), each("ip link set {} up")),
        files("plan.rail_has_address", A, f"ip address add 10.99.0.1/24 dev {RAIL}\n", f"ip address del 10.99.0.1/24 dev {RAIL}\n"),
    ],
}
# What a lab cannot show, and why.
NOT_SHOWN: dict[str, str] = {
    "node.healthy": "Nothing is switched on for it: the test of the healthy lab asserts it on both nodes.",
    "clock.unsynchronized": "The clock is that of the machine which holds the lab, and so is what the kernel says of it.",
    "clock.apart": "All nodes of a lab and the controller have the same clock.",
    "kernel.wifi": "A virtual interface has no driver in /sys, and nothing can be laid over it there.",
    "cluster.python": "The nodes come from one image, and the Python that runs the facts tells its version.",
    "plan.rail_addresses": "The playbook's argument specification refuses a value of another type before the plan sees it.",
    "plan.no_management_address": "Nodes of a lab are reached over IPv4, so that their management interface has an address.",
}
# There in a healthy lab too: its kernel is the host's, its names are those of a fresh node, and nothing has set up its rails.
AT_REST = ("memory.memlock", "kernel.next_boot_differs", "names.own", "services.sshd_oom", "rail.no_address", "mtu.low")
