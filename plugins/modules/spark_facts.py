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
      - The subsets are V(gpu), V(rdma), V(platform) and V(toolchain). C(proven) is always returned.
    type: list
    elements: str
    default: [all]
notes:
  - Commands that it runs, each at most once and for at most 20 seconds, are
    C(nvidia-smi --query-gpu=... --format=csv), C(ibv_devinfo) and C(ip -j address).
    Only a GPU with MIG switched on adds C(nvidia-smi -L), and only a CUDA toolkit whose files tell no version adds C(nvcc --version).
    A driver that does not know a field is asked again without it.
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

import os
import sys
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils import _nvidia_smi, _platform, _rdma, _toolchain
from ansible_collections.gb10.fleet.plugins.module_utils._files import read_text
from ansible_collections.gb10.fleet.plugins.module_utils._run import run
from ansible_collections.gb10.fleet.plugins.module_utils._subset import resolve_subset

ROOT = "/"
SUBSETS = ("gpu", "rdma", "platform", "toolchain")
MINIMUM = ("platform",)
PROVEN = "etc/ansible/facts.d/gb10.fact"
REPORT = "Please report it with the output of that command at https://github.com/gb10-fleet/gb10.fleet/issues."


class Gatherer:
    """Asks the node's tools and files, and turns what they say into facts."""

    def __init__(self, module: AnsibleModule, root: str) -> None:
        self.module = module
        self.root = root

    def run(self, path: str, *arguments: str) -> tuple[int, str, str]:
        """Runs a tool; bytes that are no text do not matter."""
        return run(self.module, [path, *arguments], errors="surrogate_or_replace")

    def find(self, tool: str) -> str | None:
        """Path of a tool, or None; the folders that only root has on its path count too."""
        return self.module.get_bin_path(tool, opt_dirs=["/usr/sbin", "/sbin"])

    def gather(self, subsets: t.Sequence[str]) -> dict[str, t.Any]:
        facts: dict[str, t.Any] = {name: getattr(self, name)() for name in subsets}
        if "platform" in facts and "gpu" in facts:
            _platform.confirm_spark(facts["platform"], facts["gpu"])
        facts["proven"] = self.proven()
        return facts

    def gpu(self) -> dict[str, t.Any]:
        kernel_module = _nvidia_smi.read_kernel_module(self.root)
        tool = self.find("nvidia-smi")
        if not tool:
            return _nvidia_smi.absent("nvidia-smi is not installed; install the NVIDIA driver.", kernel_module)
        fields = list(_nvidia_smi.QUERY_FIELDS)
        while True:
            rc, stdout, stderr = self.run(tool, f"--query-gpu={','.join(fields)}", "--format=csv")
            unknown = _nvidia_smi.unknown_field(stdout + stderr)
            if unknown not in fields or len(fields) == 1:
                break
            fields.remove(unknown)
        mig: dict[int, list[dict[str, t.Any]]] = {}
        if any(row.get("mig.mode.current") == "Enabled" for row in _nvidia_smi.parse_query(stdout, fields).rows):
            mig = _nvidia_smi.parse_mig_list(self.run(tool, "-L")[1])
        total = _platform.read_memory(self.root)["memory_total_bytes"]
        gpu = _nvidia_smi.summarize(rc, stdout, stderr, fields, kernel_module, total, mig)
        if not gpu["devices"] and rc == 0:
            self.module.warn(f"Cannot read the answer of nvidia-smi --query-gpu --format=csv. {REPORT}")
        return gpu

    def rdma(self) -> dict[str, t.Any]:
        devices = _rdma.read_devices(self.root)
        tool = self.find("ibv_devinfo") if devices else None
        if tool:
            rc, stdout, stderr = self.run(tool)
            verbs = _rdma.parse_ibv_devinfo(stdout)
            _rdma.merge_verbs(devices, verbs)
            if rc != 0:
                self.module.warn(
                    f"ibv_devinfo ended with {rc} and said '{stderr.strip()}', so active_mtu is not known for all devices."
                )
            elif not verbs:
                self.module.warn(f"Cannot read the answer of ibv_devinfo, so active_mtu is unknown. {REPORT}")
        return _rdma.summarize(devices)

    def platform(self) -> dict[str, t.Any]:
        platform = _platform.read_platform(self.root, os.uname(), os.cpu_count())
        platform["interfaces"] = _platform.describe_interfaces(self.root, self.interfaces())
        return platform

    def interfaces(self) -> list[dict[str, t.Any]]:
        tool = self.find("ip")
        if not tool:
            self.module.warn("The command ip is not installed, so addresses are unknown; install iproute2.")
            return _platform.read_links(self.root)
        try:
            return _platform.parse_addresses(self.run(tool, "-j", "address")[1])
        except ValueError:
            self.module.warn(f"Cannot read the answer of ip -j address, so addresses are unknown. {REPORT}")
            return _platform.read_links(self.root)

    def toolchain(self) -> dict[str, t.Any]:
        toolkits = _toolchain.read_cuda(self.root, self.module.warn)
        nvcc = next((toolkit["compiler"] for toolkit in reversed(toolkits) if toolkit["compiler"]), None)
        if nvcc is None:
            silent = next((toolkit["path"] for toolkit in reversed(toolkits) if toolkit["has_compiler"]), None)
            if silent:
                nvcc = _toolchain.parse_nvcc(self.run(f"{silent}/bin/nvcc", "--version")[1])
        return {
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "cuda": [{"path": toolkit["path"], "version": toolkit["version"]} for toolkit in toolkits],
            "nvcc": nvcc,
            "release": _toolchain.read_release(self.root, self.module.warn),
            "current": _toolchain.current_path(self.root),
            "units": _toolchain.read_units(self.root),
        }

    def proven(self) -> dict[str, t.Any]:
        try:
            return _toolchain.read_json_object(read_text(self.root, PROVEN)) or {}
        except ValueError:
            self.module.warn(f"Cannot read /{PROVEN} as a JSON object, so nothing counts as proven; remove the file.")
            return {}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"gather_subset": {"type": "list", "elements": "str", "default": ["all"]}},
        supports_check_mode=True,
    )
    try:
        subsets = resolve_subset(module.params["gather_subset"], SUBSETS, MINIMUM)
    except ValueError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, ansible_facts={"spark": Gatherer(module, ROOT).gather(subsets)})


if __name__ == "__main__":
    main()
