#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_check
short_description: Prove that the rails of a node carry whole packets to every peer
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Sends one packet of exactly the MTU, which may not be split, over each rail to each peer, from the rail's own address.
  - Checks the MTU and address of each rail's interface, and that the RDMA device uses the MTU that the kernel derives from it.
  - Never fails by itself; RV(passed) and RV(findings) say how it is.
extends_documentation_fragment:
  - gb10.fleet.rails
attributes:
  check_mode:
    description: Changes nothing, so that it runs in check mode as well.
    support: full
  diff_mode:
    description: Returns details on what has changed or would change.
    support: none
options:
  node:
    description: Inventory name of this node, for the findings.
    type: str
    required: true
  attempts:
    description: How many packets may stay without an answer before a peer counts as silent, one second each.
    type: int
    default: 5
seealso:
  - module: gb10.fleet.fabric_rails
"""

EXAMPLES = r"""
- name: Look whether the rails carry whole packets
  gb10.fleet.rail_check:
    node: spark-a
    rails:
      - netdev: enp1s0f0np0
        device: rocep1s0f0
        address: 192.168.100.10
        prefix: 24
        peers:
          - node: spark-b
            address: 192.168.100.11
    mtu: 9000
  register: rails

- name: Stop on what is wrong
  ansible.builtin.assert:
    that: rails.passed
    fail_msg: "{{ rails.findings | gb10.fleet.findings_text(['fail']) }}"
"""

RETURN = r"""
passed:
  description: Whether no finding is of severity V(fail).
  returned: success
  type: bool
  sample: true
findings:
  description: What was seen, one or more for each rail.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Kind of finding.
      returned: always
      type: str
      sample: rail.jumbo
    severity:
      description: V(ok), V(info), V(warn) or V(fail).
      returned: always
      type: str
      sample: fail
    node:
      description: The node.
      returned: always
      type: str
      sample: spark-a
    what:
      description: What is the matter.
      returned: always
      type: str
      sample: Rail enp1s0f0np0 reaches spark-b at 192.168.100.11, but not with whole packets of 9000 bytes.
    evidence:
      description: What was seen.
      returned: always
      type: str
      sample: ping -M do -s 8972 from 192.168.100.10 was not answered, ping -s 56 was
    cause:
      description: The likely cause.
      returned: always
      type: str
      sample: The MTU of the peer's interface or of a switch between is lower.
    cure:
      description: What to do.
      returned: always
      type: str
      sample: Set MTU 9000 on spark-b and on every switch between.
    source:
      description: Where the rule comes from.
      returned: always
      type: str
      sample: netdev MTU and ICMP
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils import _fabric
from ansible_collections.gb10.fleet.plugins.module_utils._platform import parse_addresses
from ansible_collections.gb10.fleet.plugins.module_utils._rdma import expected_active_mtu, parse_ibv_devinfo
from ansible_collections.gb10.fleet.plugins.module_utils._run import MISSING, run

SMALL_BYTES = 56
RULE_SOURCE = "iboe_get_mtu of the kernel: 96 bytes of headers, then the next lower of 4096, 2048, 1024, 512, 256"


class RailCheck:
    """Looks at each rail and says what it finds."""

    def __init__(self, module):
        self.module = module
        self.node = module.params["node"]
        self.mtu = module.params["mtu"]
        self.findings = []

    def say(self, identifier, severity, what, cure="", evidence="", cause="", source="netdev MTU and ICMP"):
        self.findings.append(
            {
                "id": identifier,
                "severity": severity,
                "node": self.node,
                "what": what,
                "evidence": evidence,
                "cause": cause,
                "cure": cure,
                "source": source,
            }
        )

    def all(self):
        status, output, error = run(self.module, ["ip", "-j", "address", "show"])
        if status != 0:
            said = " ".join((error or output).split())
            self.module.fail_json(msg=f"rail_check: ip does not tell the addresses ({said}); see that the package iproute2 is there and works.")
        interfaces = {interface["name"]: interface for interface in parse_addresses(output)}
        for rail in self.module.params["rails"]:
            if self.link(rail, interfaces.get(rail["netdev"])):
                self.rdma(rail)
                for peer in rail["peers"]:
                    self.reach(rail, peer)
        return self.findings

    def link(self, rail, interface):
        """Whether the rail's interface is fit for more tests."""
        name = rail["netdev"]
        wrong = _fabric.wrong_of(rail, self.mtu, interface)
        if interface is None:
            self.say("rail.missing", "fail", f"Rail {name} is not there.", "Put the cable in at both ends and boot this node.",
                     cause="Without a cable the card leaves the PCI bus.")
            return False
        if wrong:
            self.say("rail.interface", "fail", f"Rail {name} is not as planned: {'; '.join(wrong)}.",
                     "Run the role fabric on this node, and look for another file in /etc/netplan that sets this interface.",
                     evidence=f"ip address show {name}")
        if not interface["carrier"]:
            self.say("rail.link_down", "fail", f"The link of rail {name} is down.",
                     "Put the cable in at both ends, and see that the other node is on.", evidence=f"{name} has no carrier")
        return not wrong and bool(interface["carrier"])

    def rdma(self, rail):
        """The RDMA device's MTU against the one that follows from the interface's."""
        device = rail["device"]
        expected = expected_active_mtu(self.mtu)
        status, output, error = run(self.module, ["ibv_devinfo", "-d", device])
        if status == MISSING:
            self.say("rail.active_mtu", "warn", f"The MTU that {device} uses cannot be read.",
                     "Install the package ibverbs-utils.", evidence="no ibv_devinfo on this node")
            return
        ports = [port for found in parse_ibv_devinfo(output) if found["name"] == device for port in found["ports"]]
        if status != 0 or not ports:
            self.say("rail.device", "fail", f"The RDMA device {device} of rail {rail['netdev']} does not answer.",
                     "Look at 'rdma link' on this node, then boot it with the cable in.",
                     evidence=" ".join((error or output).split())[:300])
            return
        active = ports[0]["active_mtu"]
        text = f"active_mtu {active}, interface MTU {self.mtu}"
        if active != expected:
            self.say("rail.active_mtu", "fail", f"{device} uses an MTU of {active}, and {expected} follows from {self.mtu} of {rail['netdev']}.",
                     f"Take {rail['netdev']} down and up again; if that does not help, boot this node.",
                     evidence=text, source=RULE_SOURCE)
        else:
            self.say("rail.active_mtu", "ok", f"{device} uses an MTU of {active}.", evidence=text, source=RULE_SOURCE)

    def ping(self, rail, peer, size):
        """The outcome of up to `attempts` pings, the first that is answered ends them."""
        outcome = "silent"
        argv = ["ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", str(size), "-I", rail["address"], peer["address"]]
        for attempt in range(self.module.params["attempts"]):
            answer = run(self.module, argv)
            if answer[0] == MISSING:
                self.module.fail_json(msg="rail_check: ping is not on this node; install the package iputils-ping.")
            outcome = _fabric.parse_ping(*answer)
            if outcome != "silent":
                break
        return outcome, " ".join(argv)

    def reach(self, rail, peer):
        """A whole packet to one peer; a small one tells whether the size or the way is the trouble."""
        name, other = rail["netdev"], f"{peer['node']} at {peer['address']}"
        size = self.mtu - _fabric.PING_HEADER_BYTES
        outcome, command = self.ping(rail, peer, size)
        if outcome == "ok":
            self.say("rail.jumbo", "ok", f"Rail {name} carries packets of {self.mtu} bytes to {other}.", evidence=command)
            return
        small, small_command = self.ping(rail, peer, SMALL_BYTES)
        if small == "ok":
            self.say("rail.jumbo", "fail", f"Rail {name} reaches {other}, but not with whole packets of {self.mtu} bytes.",
                     f"Set MTU {self.mtu} on {peer['node']} and on every switch between.",
                     evidence=f"{command}: {outcome}; {small_command}: ok",
                     cause="The MTU of the peer's interface or of a switch between is lower.")
        else:
            self.say("rail.peer", "fail", f"Rail {name} does not reach {other}.",
                     f"See that {peer['node']} is on and has this address, and that the cable joins these two ports.",
                     evidence=f"{command}: {outcome}; {small_command}: {small}",
                     cause="The peer is off or not set up, or the cable leads to another port.")


def argument_spec():
    return {
        "node": {"type": "str", "required": True},
        **_fabric.RAILS_SPEC,
        "attempts": {"type": "int", "default": 5},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    findings = RailCheck(module).all()
    passed = not any(found["severity"] == "fail" for found in findings)
    module.exit_json(changed=False, passed=passed, findings=findings)


if __name__ == "__main__":
    main()
