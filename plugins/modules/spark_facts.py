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
  - Returns GPU, RDMA devices, platform and toolchain of a node as C(ansible_facts.spark).
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
            devices:
              description: One entry for each GPU.
              returned: always
              type: list
              elements: dict
              sample:
                - index: 0
                  name: NVIDIA GB10
                  uuid: GPU-11111111-2222-3333-4444-555555555501
                  bus_id: 0000000F:01:00.0
                  compute_capability: "12.1"
                  vbios: 9A.0B.25.00.00
                  gsp_firmware: 580.142
                  memory_total_bytes: 130663231488
                  memory_rule: unified
                  memory_reason: The GPU has no memory of its own.
                  recovery_action: None
                  addressing_mode: ATS
                  mig: {mode: null, devices: []}
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
                  description: GUID of the device.
                  returned: always
                  type: str
                  sample: 5e0a:1103:0077:1c1b
                sys_image_guid:
                  description: GUID that the functions of one adapter share.
                  returned: always
                  type: str
                  sample: 5e0a:1103:0077:1c16
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
                  description: Speed and width of the PCI Express link in force.
                  returned: always
                  type: dict
                  sample: {speed: 32.0 GT/s, width: 4}
        platform:
          description: Machine, system and network interfaces.
          returned: when the subset V(platform) is gathered
          type: dict
          sample:
            vendor: NVIDIA
            product: NVIDIA_DGX_Spark
            product_family: DGX Spark
            board: P4242
            bios_version: 5.36_0ACUM023
            bios_date: 12/01/2025
            is_spark: true
            oem: nvidia
            dgx:
              name: DGX Spark
              pretty_name: NVIDIA DGX Spark
              platform: DGX Server for KVM
              ota_version: 7.5.0
              build_version: 7.2.3
            kernel: 6.17.0-1029-nvidia
            architecture: aarch64
            os: {id: ubuntu, version_id: "24.04", pretty_name: Ubuntu 24.04.4 LTS}
            cpus: 20
            memory_total_bytes: 130663231488
            memory_available_bytes: 121605455872
            swap_total_bytes: 17179865088
            boot_id: 9a1f7c1e-5a3c-4a51-9f0e-6a1f2c3d4e5f
            interfaces:
              - name: enp1s0f1np1
                mac: 4c:bb:47:00:00:01
                mtu: 9000
                state: up
                carrier: true
                addresses: [192.168.100.10/24]
                driver: mlx5_core
                default_route: false
            renderer: NetworkManager
        toolchain:
          description: Python, CUDA toolkits and the release that is in use.
          returned: when the subset V(toolchain) is gathered
          type: dict
          sample:
            python: 3.12.3
            cuda: [{path: /usr/local/cuda-13.0, version: 13.0.2}]
            nvcc: 13.0.88
            release:
              key: cuda-12.8-0.32.0-0123456789ab
              vllm: 0.32.0
              torch: 2.13.0
              ray: 2.60.0
              nccl: 2.28.9
              python: 3.12.3
            current: /opt/gb10/releases/cuda-12.8-0.32.0-0123456789ab
            units: [gb10-ray.service, gb10-serve@tiny.service]
        proven:
          description: Content of C(/etc/ansible/facts.d/gb10.fact), what earlier runs have proven; empty where there is none.
          returned: always
          type: dict
          sample: {}
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
