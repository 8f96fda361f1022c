#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spark_facts
short_description: Gathers what a DGX Spark (GB10) node is and has
version_added: 0.1.0
description:
  - Returns GPU, RDMA devices, platform, kernel, memory, toolchain and services of a node as C(ansible_facts.spark).
  - It works for a normal user, and on a node without GPU, RDMA device or any of the tools. What is not known is V(null).
  - A later run that gathers fewer subsets keeps the facts of the others.
author:
  - gb10.fleet developers (@gb10-fleet)
attributes:
  check_mode:
    description: Can run in check mode and returns the same facts.
    support: full
  diff_mode:
    description: Will return details on what has changed when run in diff mode.
    support: N/A
  facts:
    description: Action returns an C(ansible_facts) dictionary that updates existing host facts.
    support: full
options:
  gather_subset:
    description:
      - Which facts to gather. V(all) is every subset, V(min) is V(platform) alone.
      - A name adds a subset to V(min), a name with a leading V(!) takes one away, V(!all) leaves V(min).
      - The subsets are V(gpu), V(rdma), V(platform), V(kernel), V(memory), V(toolchain) and V(services).
        C(proven) and C(unread) are always returned.
    type: list
    elements: str
    default: [all]
  redact:
    description:
      - Whether what tells one machine from all others is left out. These are serial numbers, MAC addresses, UUIDs, GUIDs of
        devices, and GIDs and IPv6 addresses that are made from them. The keys stay and are V(null), text within a line becomes C(REDACTED).
      - IPv4 addresses, the id of the boot, and GUIDs that name a kind of firmware always stay. The machine id is never returned.
    type: bool
    default: true
  time_limit:
    description:
      - Seconds that each tool may take. All run side by side, so that this is the longest that tools can hold up the module.
      - A tool that takes longer is stopped and named in C(unread); everything else is returned as ever.
    type: int
    default: 10
  resolve:
    description:
      - Names that the node is to resolve, as C(platform.names). Its own name is always resolved.
    type: list
    elements: str
    default: []
notes:
  - Commands that it runs, all at the same time and each at most once, are C(nvidia-smi --query-gpu=... --format=csv), C(nvidia-smi -q -x),
    C(ibv_devinfo), C(ip -j address), C(fwupdmgr get-devices --json), C(fwupdmgr get-history --json), C(systemctl show) and
    C(getent ahostsv4 NAME).
    Only a GPU with MIG switched on adds C(nvidia-smi -L), only a CUDA toolkit whose files tell no version adds C(nvcc --version),
    and only a node with an RDMA device is asked by C(ibv_devinfo). A driver that does not know a field is asked again without it.
  - RDMA facts are files of C(/sys/class/infiniband) and C(/sys/class/net). Tools that reach into a card's configuration space,
    such as C(mstflint), are never called.
  - RV(ansible_facts.spark.rdma.devices[].active_mtu) is in no file of sysfs and in no answer of C(rdma), only a verbs query tells it.
    So it comes from C(ibv_devinfo) (package ibverbs-utils) and is V(null) where that is missing.
    RV(ansible_facts.spark.rdma.devices[].expected_active_mtu) is what the kernel's rule gives for the MTU of the network interface.
seealso:
  - module: ansible.builtin.setup
"""

EXAMPLES = r"""
- name: Gather everything about the node
  gb10.fleet.spark_facts:

- name: Gather the RDMA devices again after the network has changed
  gb10.fleet.spark_facts:
    gather_subset:
      - "!all"
      - rdma

- name: Gather everything with serial numbers, GUIDs and MAC addresses, and ask for the addresses of the peer
  gb10.fleet.spark_facts:
    redact: false
    resolve:
      - spark-b

- name: Show the devices behind the first cage
  ansible.builtin.debug:
    msg: "{{ ansible_facts.spark.rdma.cages.p0 | default([]) }}"
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to C(ansible_facts).
  returned: always
  type: dict
  contains:
    spark:
      description: The facts. A subset that was never gathered is missing.
      returned: always
      type: dict
      contains:
        gpu:
          description: GPUs and their driver.
          returned: when the subset V(gpu) is gathered
          type: dict
          contains:
            driver:
              description: Version of the driver; of its kernel module where C(nvidia-smi) cannot tell.
              returned: always
              type: str
              sample: 580.142
            state:
              description: V(ok), V(absent), V(driver_mismatch), V(needs_reset) or V(degraded).
              returned: always
              type: str
              sample: ok
            reason:
              description: Why the state is not V(ok), with the cure.
              returned: always
              type: str
              sample: null
            library_version:
              description: Version of the driver's library on disk; differs from that of the loaded module after an update without reboot.
              returned: always
              type: str
              sample: 580.142
            count:
              description: Number of NVIDIA GPUs on the PCI bus, whatever the driver says of them.
              returned: always
              type: int
              sample: 1
            module_version:
              description: Version of the loaded kernel module.
              returned: always
              type: str
              sample: 580.142
            cuda_version:
              description: Version of CUDA that the driver offers; a toolkit's is in the subset toolchain.
              returned: always
              type: str
              sample: "13.0"
            devices:
              description: One entry for each GPU. C(health) is V(ok), V(degraded) or V(needs_reset).
              returned: always
              type: list
              elements: dict
              sample:
                - index: 0
                  name: NVIDIA GB10
                  uuid: null
                  bus_id: 0000000F:01:00.0
                  compute_capability: "12.1"
                  vbios: 9A.0B.25.00.00
                  gsp_firmware: 580.142
                  inforom: {image: null, oem: null, ecc: null, power: null}
                  memory_total_bytes: 130663231488
                  memory_rule: unified
                  memory_reason: The GPU has no memory of its own.
                  recovery_action: None
                  addressing_mode: ATS
                  mig: {mode: null, devices: []}
                  power_watts: 4.02
                  processes:
                    - {pid: 4242, name: python3, used_memory_bytes: 64424509440}
                  health: ok
                  health_reason: null
                  warnings: []
            warnings:
              description: Lines of C(nvidia-smi) that are no rows.
              returned: always
              type: list
              elements: str
              sample: []
        rdma:
          description: RDMA devices, one entry for each port.
          returned: when the subset V(rdma) is gathered
          type: dict
          contains:
            state:
              description: V(ok), or V(no_device), which is normal for a Spark without a cable.
              returned: always
              type: str
              sample: ok
            reason:
              description: Why there is no device, with the cure.
              returned: always
              type: str
              sample: null
            cages:
              description: Names of the devices behind each cage, in the order of their PCI addresses; virtual functions do not count.
              returned: always
              type: dict
              sample: {p0: [rocep1s0f0, roceP2p1s0f0], p1: [rocep1s0f1, roceP2p1s0f1]}
            nic_functions:
              description: Number of network functions of NVIDIA's cards on the PCI bus, virtual ones not counted.
              returned: always
              type: int
              sample: 4
            virtual_functions:
              description: Number of virtual functions.
              returned: always
              type: int
              sample: 0
            hotplug:
              description: Whether what takes the card off the bus without a cable is installed, and whether it is switched on.
              returned: always
              type: dict
              sample: {installed: true, enabled: true}
            devices:
              description: The ports, in the order of their PCI addresses.
              returned: always
              type: list
              elements: dict
              contains:
                name:
                  description: Name of the RDMA device; upper and lower case differ.
                  returned: always
                  type: str
                  sample: roceP2p1s0f1
                port:
                  description: Number of the port.
                  returned: always
                  type: int
                  sample: 1
                netdev:
                  description: Its network interface.
                  returned: always
                  type: str
                  sample: enP2p1s0f1np1
                state:
                  description: V(ACTIVE), V(DOWN), V(INIT) or V(ARMED).
                  returned: always
                  type: str
                  sample: ACTIVE
                phys_state:
                  description: V(LinkUp), V(Disabled), V(Polling) and so on.
                  returned: always
                  type: str
                  sample: LinkUp
                reason:
                  description: Why the port is not active.
                  returned: always
                  type: str
                  sample: null
                rate_gbps:
                  description: Rate of the link in Gb/s, V(null) for a port without a link.
                  returned: always
                  type: float
                  sample: 200.0
                link_layer:
                  description: V(Ethernet) or V(InfiniBand).
                  returned: always
                  type: str
                  sample: Ethernet
                transport:
                  description: V(RoCE), V(InfiniBand), V(iWARP), V(usNIC) or V(unspecified). NCCL's RDMA serves the first two.
                  returned: always
                  type: str
                  sample: RoCE
                active_width:
                  description: Lanes of the link in force.
                  returned: always
                  type: str
                  sample: 2X
                active_speed:
                  description: Speed of each lane.
                  returned: always
                  type: str
                  sample: 100.0 Gbps
                netdev_state:
                  description: State of the network interface.
                  returned: always
                  type: str
                  sample: up
                carrier:
                  description: Whether the network interface has a carrier; V(null) for one that is not up.
                  returned: always
                  type: bool
                  sample: true
                link_speed_mbps:
                  description: Speed of the network interface in Mb/s.
                  returned: always
                  type: int
                  sample: 200000
                addresses:
                  description: Addresses of the network interface.
                  returned: always
                  type: list
                  elements: str
                  sample: [192.168.100.10/24]
                netdev_mtu:
                  description: MTU of the network interface in bytes.
                  returned: always
                  type: int
                  sample: 9000
                active_mtu:
                  description: RDMA MTU in force, in bytes, from C(ibv_devinfo).
                  returned: always
                  type: int
                  sample: 4096
                max_mtu:
                  description: Largest RDMA MTU of the device, in bytes, from C(ibv_devinfo).
                  returned: always
                  type: int
                  sample: 4096
                expected_active_mtu:
                  description: RDMA MTU that the kernel derives from the MTU of the network interface; for RoCE only.
                  returned: always
                  type: int
                  sample: 4096
                gids:
                  description: The used entries of the GID table.
                  returned: always
                  type: list
                  elements: dict
                  sample:
                    - index: 3
                      gid: 0000:0000:0000:0000:0000:ffff:c0a8:640a
                      type: RoCE v2
                      netdev: enP2p1s0f1np1
                      ipv4: 192.168.100.10
                firmware:
                  description: Firmware version.
                  returned: always
                  type: str
                  sample: 28.45.4028
                psid:
                  description: Board id.
                  returned: always
                  type: str
                  sample: NVD0000000087
                node_guid:
                  description: GUID of the device, V(null) unless O(redact=false).
                  returned: always
                  type: str
                  sample: null
                sys_image_guid:
                  description: GUID that the functions of one adapter share, V(null) unless O(redact=false).
                  returned: always
                  type: str
                  sample: null
                phys_port_name:
                  description: The driver's name of the physical port.
                  returned: always
                  type: str
                  sample: p1
                cage:
                  description: Cage that the port belongs to; V(null) for a virtual function.
                  returned: always
                  type: str
                  sample: p1
                twin:
                  description: Name of the other device of the cage.
                  returned: always
                  type: str
                  sample: rocep1s0f1
                pci_address:
                  description: PCI address.
                  returned: always
                  type: str
                  sample: 0002:01:00.1
                is_virtual_function:
                  description: Whether it is an SR-IOV virtual function.
                  returned: always
                  type: bool
                  sample: false
                pcie:
                  description: Speed and width of the PCI Express link in force, and the best of the device and its slot.
                  returned: always
                  type: dict
                  sample: {speed: 32.0 GT/s, width: 4, max_speed: 32.0 GT/s, max_width: 4}
                counters:
                  description: Those counters of the port that count errors, discards and timeouts, as far as the driver keeps them.
                  returned: always
                  type: dict
                  sample: {port_rcv_errors: 0, port_xmit_discards: 0, out_of_sequence: 12, local_ack_timeout_err: 0}
        platform:
          description: Machine, system, firmware, clock, file systems and network interfaces.
          returned: when the subset V(platform) is gathered
          type: dict
          contains:
            vendor:
              description: Vendor of the machine by DMI.
              returned: always
              type: str
              sample: "NVIDIA"
            product:
              description: Its product by DMI.
              returned: always
              type: str
              sample: "NVIDIA_DGX_Spark"
            product_family:
              description: Its product family by DMI.
              returned: always
              type: str
              sample: "DGX Spark"
            board:
              description: Its board by DMI.
              returned: always
              type: str
              sample: "P4242"
            bios_version:
              description: The BIOS that runs.
              returned: always
              type: str
              sample: "5.36_0ACUM023"
            bios_date:
              description: Its date.
              returned: always
              type: str
              sample: "12/11/2025"
            is_spark:
              description: Whether the node is a Spark, by its GPU or its release file.
              returned: always
              type: bool
              sample: true
            oem:
              description: Short name of who built the Spark.
              returned: always
              type: str
              sample: "nvidia"
            dgx:
              description: What C(/etc/dgx-release) says, without the serial number. The last update counts.
              returned: always
              type: dict
              sample:
                {name: DGX Spark, pretty_name: NVIDIA DGX Spark, platform: DGX Server for KVM, ota_version: 7.5.0, build_version: 7.2.3}
            fastos_version:
              description: Version in C(/etc/fastos-release).
              returned: always
              type: str
              sample: "1.91.51"
            kernel:
              description: Release of the running kernel.
              returned: always
              type: str
              sample: "6.17.0-1029-nvidia"
            architecture:
              description: Its architecture.
              returned: always
              type: str
              sample: "aarch64"
            os:
              description: What C(/etc/os-release) says.
              returned: always
              type: dict
              sample:
                {id: ubuntu, version_id: '24.04', pretty_name: Ubuntu 24.04.4 LTS}
            cpus:
              description: Number of CPUs.
              returned: always
              type: int
              sample: 20
            memory_total_bytes:
              description: MemTotal.
              returned: always
              type: int
              sample: 130663231488
            memory_available_bytes:
              description: MemAvailable.
              returned: always
              type: int
              sample: 121605455872
            swap_total_bytes:
              description: SwapTotal.
              returned: always
              type: int
              sample: 17179865088
            boot_id:
              description: Random id of this boot.
              returned: always
              type: str
              sample: "a77c367e-4349-4dc4-a067-23f4d7c88bfd"
            hostname:
              description: The node's own name.
              returned: always
              type: str
              sample: "spark-a"
            machine_id_digest:
              description: A digest of the machine id, equal on two nodes with the same one. It does not give the id away.
              returned: always
              type: str
              sample: "cb00b2de53cb"
            own_address:
              description: IPv4 addresses that the node's own name resolves to; empty where it resolves to none, V(null) where no answer came.
              returned: always
              type: list
              elements: str
              sample:
                [127.0.1.1]
            names:
              description: The same for each name of O(resolve).
              returned: always
              type: dict
              sample:
                spark-b: [192.168.100.11]
            clock:
              description:
                - >-
                  Whether something keeps the clock, the seconds since 1970 on the node, and by how many seconds the node is ahead of the controller,
                  at least and at most.
              returned: always
              type: dict
              sample:
                synchronized: true
                epoch: 1796080809.498417
                window: [-0.412, 0.731]
            filesystems:
              description: Space and inodes of the file systems under the paths that count, for a path that is not there yet under its nearest parent.
              returned: always
              type: list
              elements: dict
              sample:
                - {path: /opt/gb10, exists_at: /opt, mount: /, type: ext4, total_bytes: 983349346304, free_bytes: 812309843968, inodes_free: 60112384,
                  inodes_total: 61054976}
            firmware:
              description:
                - >-
                  What C(fwupdmgr) says. C(state) is V(ok), V(absent), V(denied) or V(failed). Versions are texts; only releases that fwupd marks as
                  upgrades are in C(upgrades).
              returned: always
              type: dict
              sample:
                state: ok
                reason: null
                devices:
                - guid: 3d13c989-e6a8-4ead-95ee-921f09868f65
                  guids: [3d13c989-e6a8-4ead-95ee-921f09868f65]
                  name: Embedded Controller
                  plugin: uefi_capsule
                  vendor: NVIDIA
                  version: 3.5.8
                  version_format: surface
                  version_raw: 50332936
                  version_decoded: null
                  update_state: null
                  update_error: null
                  pending_version: null
                  flags: [internal, updatable, require-ac, supported, registered, needs-reboot]
                  updatable: true
                  needs_reboot: false
                  needs_shutdown: false
                  upgrades: []
                history:
                - {guid: 3d13c989-e6a8-4ead-95ee-921f09868f65, name: Embedded Controller, version: 3.5.7, release: 3.5.8,
                  update_state: success, update_error: null, modified: 1796080809}
                warnings: []
            bios:
              description: The BIOS that runs against the one that fwupd has installed, and whether an update waits for a restart.
              returned: always
              type: dict
              sample:
                {running: 5.36_0ACUM023, installed: 2.155.11, staged: false}
            interfaces:
              description: Network interfaces, by name.
              returned: always
              type: list
              elements: dict
              sample:
                - name: enp1s0f0np0
                  mac: null
                  mtu: 9000
                  state: up
                  carrier: true
                  addresses: [192.168.100.10/24, 'fe80::/64']
                  driver: mlx5_core
                  default_route: false
            renderer:
              description: Who drives the network, V(networkd) or V(NetworkManager).
              returned: always
              type: str
              sample: "NetworkManager"
        kernel:
          description: The kernel that runs and the one that boots next, and packages of kernel and driver.
          returned: when the subset V(kernel) is gathered
          type: dict
          contains:
            running:
              description: Release of the running kernel.
              returned: always
              type: str
              sample: "6.17.0-1029-nvidia"
            release_flavour:
              description: Its flavour.
              returned: always
              type: str
              sample: "nvidia"
            next_boot:
              description: The kernel that boots next; V(null) where a normal user may not read the boot menu.
              returned: always
              type: str
              sample: "6.17.0-1029-nvidia"
            next_boot_rule:
              description: How that was found.
              returned: always
              type: str
              sample: "grub.cfg default"
            next_boot_has_nvidia:
              description: Whether NVIDIA's module is there for that kernel.
              returned: always
              type: bool
              sample: true
            installed:
              description: Kernels that have an image or modules, the oldest first.
              returned: always
              type: list
              elements: dict
              sample:
                - {version: 6.17.0-1014-nvidia, has_image: true, has_nvidia: true}
                - {version: 6.17.0-1029-nvidia, has_image: true, has_nvidia: true}
            command_line:
              description: The kernel's command line.
              returned: always
              type: str
              sample: "BOOT_IMAGE=/boot/vmlinuz-6.17.0-1029-nvidia root=UUID=REDACTED ro quiet splash"
            kho:
              description: Kexec handover as the command line sets it, V(on) or V(off); V(null) where it says nothing.
              returned: always
              type: str
              sample: "off"
            held:
              description: Packages that apt holds.
              returned: always
              type: list
              elements: str
              sample:
                [nvidia-driver-580-open]
            driver_packages:
              description: Installed packages of the driver.
              returned: always
              type: list
              elements: dict
              sample:
                - {name: nvidia-driver-580-open, version: 580.142-0ubuntu0.24.04.1, held: false}
            interrupted:
              description: Packages that dpkg began and did not finish.
              returned: always
              type: list
              elements: str
              sample: []
            pending_reboot:
              description: Whether an update asks for a reboot.
              returned: always
              type: bool
              sample: false
            pending_reboot_packages:
              description: The packages that ask for it.
              returned: always
              type: list
              elements: str
              sample: []
            boot_id:
              description: Random id of this boot.
              returned: always
              type: str
              sample: "a77c367e-4349-4dc4-a067-23f4d7c88bfd"
            modules:
              description: Version of each loaded module, V(true) for one that tells none, V(false) for one that is not loaded.
              returned: always
              type: dict
              sample:
                {nvidia: '580.142', nvidia_peermem: false, mlx5_core: true}
            secure_boot:
              description: Whether Secure Boot is on; V(null) without UEFI.
              returned: always
              type: bool
              sample: true
            sysctl:
              description: Settings of IPv4 for all interfaces.
              returned: always
              type: dict
              sample:
                {rp_filter: 2, arp_ignore: 1, arp_announce: 2}
        memory:
          description: Memory and swap.
          returned: when the subset V(memory) is gathered
          type: dict
          contains:
            total_bytes:
              description: MemTotal.
              returned: always
              type: int
              sample: 130663231488
            available_bytes:
              description: MemAvailable.
              returned: always
              type: int
              sample: 121605455872
            free_bytes:
              description: MemFree.
              returned: always
              type: int
              sample: 21067694080
            page_cache_bytes:
              description: Page cache that can be dropped.
              returned: always
              type: int
              sample: 2834497536
            swap_total_bytes:
              description: SwapTotal.
              returned: always
              type: int
              sample: 17179865088
            swap_free_bytes:
              description: SwapFree.
              returned: always
              type: int
              sample: 17179865088
            swappiness:
              description: How readily the kernel swaps.
              returned: always
              type: int
              sample: 60
            swap:
              description: Swap files and partitions.
              returned: always
              type: list
              elements: dict
              sample:
                - {path: /swap.img, type: file, size_bytes: 17179865088, used_bytes: 0}
            huge_pages_bytes:
              description: Memory that is set aside for huge pages.
              returned: always
              type: int
              sample: 0
            memlock:
              description: Limits of locked memory of this session in bytes, V(-1) for none.
              returned: always
              type: dict
              sample:
                {soft: 8388608, hard: 8388608}
        toolchain:
          description: Python, CUDA toolkits, NCCL libraries, releases, and what could come in their way.
          returned: when the subset V(toolchain) is gathered
          type: dict
          contains:
            python:
              description: Version of the Python that runs the module.
              returned: always
              type: str
              sample: "3.12.3"
            cuda:
              description: CUDA toolkits on disk.
              returned: always
              type: list
              elements: dict
              sample:
                - {path: /usr/local/cuda-13.0, version: 13.0.2}
            default_cuda:
              description: The toolkit that C(/usr/local/cuda) leads to.
              returned: always
              type: str
              sample: "/usr/local/cuda-13.0"
            nvcc:
              description: Version of the newest toolkit's compiler.
              returned: always
              type: str
              sample: "13.0.88"
            release:
              description: The release that is in use.
              returned: always
              type: dict
              sample:
                {key: cuda-12.8-0.32.0-0123456789ab, vllm: 0.32.0, torch: 2.13.0, ray: 2.60.0, nccl: 2.28.9, python: 3.12.3}
            current:
              description: Where C(/opt/gb10/current) points.
              returned: always
              type: str
              sample: "/opt/gb10/releases/cuda-12.8-0.32.0-0123456789ab"
            units:
              description: Units of ours that start at boot.
              returned: always
              type: list
              elements: str
              sample:
                [gb10-ray.service, gb10-serve@tiny.service]
            nccl_libraries:
              description: NCCL libraries of system, CUDA and releases, with the ELF build id.
              returned: always
              type: list
              elements: dict
              sample:
                - {path: /usr/lib/aarch64-linux-gnu/libnccl.so.2.28.9, size_bytes: 211812352, version: 2.28.9,
                  build_id: 5d1f0c6f8f3e6a3c2f0f4b1b9f7a2a4f0e8d9c1b}
            releases:
              description: Releases on the node.
              returned: always
              type: list
              elements: dict
              sample:
                - {key: cuda-12.8-0.32.0-0123456789ab, vllm: 0.32.0, torch: 2.13.0, ray: 2.60.0, nccl: 2.28.9, python: 3.12.3}
            strays:
              description: vLLM, Ray, torch and nvcc that a login finds and that no release and no CUDA toolkit brought.
              returned: always
              type: list
              elements: dict
              sample:
                - {what: vllm, path: /usr/local/bin/vllm, version: 0.19.0, where: path}
            environment:
              description:
                - >-
                  Variables for CUDA, NCCL, vLLM, Ray, gloo and torch that are set in start-up files and units not of ours. Of names that hold a
                  secret the value is V(null).
              returned: always
              type: list
              elements: dict
              sample:
                - {name: NCCL_IB_GID_INDEX, value: '3', file: /etc/environment, line: 2, kind: system}
            repositories:
              description: Sources of apt.
              returned: always
              type: list
              elements: dict
              sample:
                - file: /etc/apt/sources.list.d/cuda.list
                  uris: ['https://packages.example/cuda/sbsa/']
                  suites: [/]
                  signed_by: /usr/share/keyrings/cuda-archive-keyring.gpg
                  architectures: []
                  enabled: true
            repository_conflicts:
              description: Sources that name several keys for one place, which breaks every run of apt.
              returned: always
              type: list
              elements: dict
              sample:
                - uri: https://packages.example/cuda/sbsa/
                  files: [/etc/apt/sources.list.d/a.list, /etc/apt/sources.list.d/b.list]
                  keys: [/usr/share/keyrings/a.gpg, /usr/share/keyrings/b.gpg]
        services:
          description: Units, Docker, firewall, time, ports and updates.
          returned: when the subset V(services) is gathered
          type: dict
          contains:
            units:
              description: Units of ours and others that matter, those that systemd knows.
              returned: always
              type: list
              elements: dict
              sample:
                - {name: gb10-ray.service, load: loaded, active: active, sub: running, enabled: enabled, restarts: 0}
            docker:
              description: Docker and CDI.
              returned: always
              type: dict
              sample:
                installed: true
                cdi_files: [/etc/cdi/nvidia.yaml]
                cdi_enabled: true
                runtime_default: null
            firewall:
              description: The firewall in use, V(ufw), V(firewalld), V(nftables) or V(none).
              returned: always
              type: dict
              sample:
                {kind: ufw, active: false}
            time:
              description: The service that keeps the clock.
              returned: always
              type: dict
              sample:
                {service: systemd-timesyncd, synchronized: true}
            remove_ipc:
              description: Whether logind removes semaphores and shared memory of a user who logs out.
              returned: always
              type: bool
              sample: true
            ports:
              description: Ports that something listens on.
              returned: always
              type: list
              elements: dict
              sample:
                - {port: 22, address: 0.0.0.0, protocol: tcp}
            earlyoom:
              description: earlyoom and its arguments.
              returned: always
              type: dict
              sample:
                {installed: true, active: true, arguments: -r 3600}
            sshd_oom_score_adjust:
              description: How the kernel rates sshd when memory runs out.
              returned: always
              type: int
              sample: -1000
            unattended_upgrades:
              description: Whether updates by themselves may change the driver, and by what.
              returned: always
              type: dict
              sample:
                {installed: true, enabled: true, may_change_driver: false, evidence: No allowed origin has packages of the driver.}
            apt_lock:
              description: Who holds the lock of dpkg.
              returned: always
              type: dict
              sample:
                {holder: unattended-upgr, pid: 4242}
        proven:
          description: Content of C(/etc/ansible/facts.d/gb10.fact), what earlier runs have proven; empty where there is none.
          returned: always
          type: dict
          sample: {}
        unread:
          description:
            - What could not be read or was not understood. C(reason) is V(late), V(denied), V(failed) or V(not_understood).
              A tool that is not installed is no entry.
          returned: always
          type: list
          elements: dict
          sample:
            - subset: platform
              source: fwupdmgr get-devices
              reason: late
              evidence: fwupdmgr get-devices --json did not end within 10 s and was stopped
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._gather import MINIMUM, SUBSETS, Gatherer
from ansible_collections.gb10.fleet.plugins.module_utils._subset import resolve_subset

ROOT = "/"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "gather_subset": {"type": "list", "elements": "str", "default": ["all"]},
            "redact": {"type": "bool", "default": True},
            "time_limit": {"type": "int", "default": 10},
            "resolve": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        subsets = resolve_subset(module.params["gather_subset"], SUBSETS, MINIMUM)
    except ValueError as error:
        module.fail_json(msg=str(error))
    if module.params["time_limit"] < 1:
        module.fail_json(msg=f"time_limit is {module.params['time_limit']}; give the whole seconds that a tool may take, 1 or more.")
    gatherer = Gatherer(module, ROOT, module.params["time_limit"], module.params["resolve"], module.params["redact"])
    module.exit_json(changed=False, ansible_facts={"spark": gatherer.gather(subsets)})


if __name__ == "__main__":
    main()
