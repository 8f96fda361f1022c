#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_rails
short_description: Give the rails of a node their addresses and MTU
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Writes C(/etc/netplan/60-gb10-fabric.yaml) for the rails and nothing else, and activates these links only. The link by which
    the node is reached is left alone, which C(netplan apply) would not do.
  - Waits until each rail has its address and MTU. If one does not get there, the state before the call comes back and the
    module fails.
  - Writes names for the addresses of all nodes on the rails into a block of C(/etc/hosts).
  - O(state=absent) gives back the files, addresses and MTUs that were there before.
extends_documentation_fragment:
  - gb10.fleet.rails
attributes:
  check_mode:
    description: Can run in check mode and predict changes.
    support: full
  diff_mode:
    description: Returns details on what has changed or would change.
    support: full
options:
  state:
    description:
      - V(present) sets the rails up, V(absent) puts back what was before, as V(present) without rails does.
    type: str
    choices: [present, absent]
    default: present
  hosts:
    description:
      - Names for addresses, for C(/etc/hosts).
    type: list
    elements: dict
    default: []
    suboptions:
      address:
        description: IPv4 address.
        type: str
        required: true
      names:
        description: Its names.
        type: list
        elements: str
        required: true
  renderer:
    description:
      - Who drives the network. V(auto) takes what netplan says.
    type: str
    choices: [auto, networkd, NetworkManager]
    default: auto
  limit:
    description: Seconds to wait for addresses and MTUs.
    type: int
    default: 30
seealso:
  - module: gb10.fleet.rail_check
"""

EXAMPLES = r"""
- name: Set up the rails
  gb10.fleet.fabric_rails:
    rails:
      - netdev: enp1s0f0np0
        device: rocep1s0f0
        address: 192.168.100.10
        prefix: 24
      - netdev: enP2p1s0f0np0
        device: roceP2p1s0f0
        address: 192.168.101.10
        prefix: 24
    mtu: 9000
    hosts:
      - address: 192.168.100.11
        names: [spark-b-rail0]
  become: true

- name: Put back what was before
  gb10.fleet.fabric_rails:
    state: absent
  become: true
"""

RETURN = r"""
changed_paths:
  description: Files that were, or in check mode would be, written, removed or given back.
  returned: success
  type: list
  elements: str
  sample: [/etc/netplan/60-gb10-fabric.yaml, /etc/hosts]
backups:
  description: Files of others that were kept before they were overwritten.
  returned: success
  type: list
  elements: str
  sample: []
activated:
  description: Interfaces that were, or in check mode would be, activated or put back.
  returned: success
  type: list
  elements: str
  sample: [enp1s0f0np0, enP2p1s0f0np0]
renderer:
  description: Who drives the network.
  returned: success
  type: str
  sample: networkd
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils import _fabric
from ansible_collections.gb10.fleet.plugins.module_utils._fabric import FabricError
from ansible_collections.gb10.fleet.plugins.module_utils._lock import LockedError
from ansible_collections.gb10.fleet.plugins.module_utils._node_files import (
    Change,
    Entry,
    NodeFilesError,
    diff_of,
    entries_from,
    look,
    opened,
    write_file,
)
from ansible_collections.gb10.fleet.plugins.module_utils._platform import parse_addresses
from ansible_collections.gb10.fleet.plugins.module_utils._run import LATE, MISSING, NOT_RUN, run

NAME = "fabric"
HOSTS_PATH = "/etc/hosts"
PAUSE_SECONDS = 0.2
LIMIT_SECONDS = 60


class Rails:
    """Brings files and links to the wanted state, or back."""

    def __init__(self, module, files):
        self.module = module
        self.files = files
        self.renderer = module.params["renderer"]
        self.backups = []

    def run(self, *argv, needed=True, limit=LIMIT_SECONDS):
        """Run a tool. One that is missing is an error that names it, and so is one that fails where it is needed."""
        status, output, error = run(self.module, argv, limit)
        if status == MISSING or (needed and status in (LATE, NOT_RUN)):
            raise FabricError(error)
        if needed and status != 0:
            raise FabricError(f"{' '.join(argv)} ended with {status}: {' '.join((error or output).split())}")
        return output

    def interfaces(self):
        """The node's interfaces by name, as they are now."""
        return {interface["name"]: interface for interface in parse_addresses(self.run("ip", "-j", "address", "show"))}

    def find_renderer(self):
        """The renderer that netplan uses for interfaces that name none."""
        if self.renderer == "auto":
            said = self.run("netplan", "get", "network.renderer").strip()
            self.renderer = "NetworkManager" if said == "NetworkManager" else "networkd"
        return self.renderer

    def present(self):
        rails, mtu = self.module.params["rails"], self.module.params["mtu"]
        _fabric.check_rails(rails)
        before = self.interfaces()
        for rail in rails:
            if rail["netdev"] not in before:
                raise FabricError(
                    f"the rail {rail['netdev']} is not on this node: put the cable in at both ends and boot it, or correct"
                    " spark_cage or spark_rail_addresses"
                )
        item = {
            "path": _fabric.NETPLAN_PATH,
            "content": _fabric.netplan_text(rails, mtu, self.find_renderer()),
            "mode": "0600",
        }
        notes = dict(self.files.notes)
        stale = [netdev for netdev in notes if netdev not in [rail["netdev"] for rail in rails]]
        for rail in rails:
            notes.setdefault(rail["netdev"], _note(before[rail["netdev"]]))
        self.files.notes = notes
        previous = look(_fabric.NETPLAN_PATH)
        was_ours = _fabric.NETPLAN_PATH in self.files.own
        result = self.files.present(entries_from([item]))
        self.backups = result.backups
        drifted = [rail for rail in rails if _fabric.wrong_of(rail, mtu, before[rail["netdev"]])]
        activated = [rail["netdev"] for rail in (rails if result.changes else drifted)] + stale
        if activated and not self.module.check_mode:
            try:
                self.activate([name for name in activated if name not in stale], stale)
                self.wait(rails, mtu)
            except FabricError:
                self.go_back(previous if was_ours else None, before)
                raise
            if stale:
                self.files.notes = {netdev: note for netdev, note in notes.items() if netdev not in stale}
                self.files.save_notes()
        changes = list(result.changes) + self.hosts(self.module.params["hosts"])
        return changes, activated, _link_diff(rails, mtu, before, [rail["netdev"] for rail in drifted])

    def absent(self):
        # An earlier call put the files back and failed before the links were.
        unfinished = not self.files.own
        # The notes are needed again when the way back does not come to its end.
        result = self.files.absent(keep_notes=True)
        now = self.interfaces()
        every = result.changes or unfinished
        activated = [name for name, note in self.files.notes.items() if name in now and (every or _note(now[name]) != note)]
        if activated and not self.module.check_mode:
            self.find_renderer()
            self.activate([], activated)
        self.files.drop_notes()
        return list(result.changes) + self.hosts([]), activated, []

    def activate(self, names, given_back, needed=True):
        """Make netplan's files and let the renderer take them up for these links alone."""
        self.run("netplan", "generate", needed=needed)
        if self.renderer == "NetworkManager":
            self.run("nmcli", "connection", "reload", needed=needed)
            for name in names:
                wait = self.module.params["limit"]
                command = ["nmcli", "--wait", str(wait), "connection", "up", f"netplan-{name}", "ifname", name]
                self.run(*command, limit=wait + LIMIT_SECONDS)
        else:
            # Only links whose files changed are taken up again by a reload; the others are asked for by name.
            self.run("networkctl", "reload", needed=needed)
            for name in names:
                self.run("networkctl", "reconfigure", name)
            for name in given_back:
                # A link for which no file is left stays as it is; restore_links does the rest.
                self.run("networkctl", "reconfigure", name, needed=False)
        if given_back:
            self.restore_links({name: self.files.notes[name] for name in given_back if name in self.files.notes})

    def wait(self, rails, mtu):
        """Until every rail is as planned; at the limit an error names the first that is not."""
        end = time.monotonic() + self.module.params["limit"]
        while True:
            now = self.interfaces()
            wrong = [(rail["netdev"], _fabric.wrong_of(rail, mtu, now.get(rail["netdev"]))) for rail in rails]
            wrong = [(netdev, faults) for netdev, faults in wrong if faults]
            if not wrong:
                return
            if time.monotonic() >= end:
                netdev, faults = wrong[0]
                tool = f"nmcli device show {netdev}" if self.renderer == "NetworkManager" else f"networkctl status {netdev}"
                raise FabricError(
                    f"the rail {netdev} was not set up within {self.module.params['limit']} s ({'; '.join(faults)}), and the state"
                    f" before is back: look at '{tool}' and for another file in /etc/netplan that sets {netdev}"
                )
            time.sleep(PAUSE_SECONDS)

    def go_back(self, previous, before):
        """Undo this call: the file as it was before it, and the links."""
        first = previous is None or previous.kind != "file"
        if first:
            notes = self.files.notes
            self.files.absent(keep_notes=True)
        else:
            notes = {name: _note(before[name]) for name in self.files.notes if name in before}
            self.files.present([Entry(_fabric.NETPLAN_PATH, "file", content=previous.content, mode=previous.mode)])
        # The reason for going back is what the user shall read, not that the way back met the same trouble.
        self.activate([], [], needed=False)
        self.restore_links(notes)
        if first:
            self.files.drop_notes()

    def restore_links(self, notes):
        """Put addresses, MTU and the administrative state of links back to what was noted."""
        now = self.interfaces()
        for name, note in notes.items():
            if name not in now:
                continue
            for address in now[name]["addresses"]:
                if ":" not in address and address not in note["addresses"]:
                    self.run("ip", "address", "del", address, "dev", name, needed=False)
            if now[name]["mtu"] != note["mtu"]:
                self.run("ip", "link", "set", "dev", name, "mtu", str(note["mtu"]))
            if note["up"]:
                for address in note["addresses"]:
                    if address not in now[name]["addresses"]:
                        self.run("ip", "address", "add", address, "dev", name, needed=False)
            else:
                self.run("ip", "link", "set", "dev", name, "down")

    def hosts(self, hosts):
        """The block of the hosts file. The rest of the file belongs to others and stays."""
        found = look(HOSTS_PATH)
        if found.kind == "absent" and not hosts:
            return []
        text = found.content.decode("utf-8", "surrogateescape")
        content = _fabric.hosts_text(text, hosts).encode("utf-8", "surrogateescape")
        if content == found.content and found.kind == "file":
            return []
        mode, uid, gid = (found.mode, found.uid, found.gid) if found.kind == "file" else (0o644, os.geteuid(), os.getegid())
        if not self.module.check_mode:
            write_file(HOSTS_PATH, content, mode, uid, gid)
        return [Change(HOSTS_PATH, found, found._replace(kind="file", content=content, mode=mode, uid=uid, gid=gid), False)]


def _note(interface):
    """What of an interface teardown has to put back. Carrier is None for an interface that is not up."""
    return {
        "mtu": interface["mtu"],
        "addresses": [address for address in interface["addresses"] if ":" not in address],
        "up": interface["carrier"] is not None,
    }


def _link_diff(rails, mtu, before, drifted):
    parts = []
    for rail in rails:
        if rail["netdev"] in drifted:
            now = before[rail["netdev"]]
            addresses = [address for address in now["addresses"] if ":" not in address]
            parts.append(
                {
                    "before_header": f"link {rail['netdev']}",
                    "after_header": f"link {rail['netdev']}",
                    "before": f"mtu {now['mtu']}\naddresses {' '.join(addresses)}\n",
                    "after": f"mtu {mtu}\naddresses {_fabric.cidr(rail)}\n",
                }
            )
    return parts


def argument_spec():
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        **_fabric.RAILS_SPEC,
        "hosts": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "address": {"type": "str", "required": True},
                "names": {"type": "list", "elements": "str", "required": True},
            },
        },
        "renderer": {"type": "str", "choices": ["auto", "networkd", "NetworkManager"], "default": "auto"},
        "limit": {"type": "int", "default": 30},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        with opened(NAME, module.check_mode) as files:
            rails = Rails(module, files)
            wanted = module.params["state"] == "present" and module.params["rails"]
            changes, activated, links = rails.present() if wanted else rails.absent()
    except LockedError as error:
        module.fail_json(msg=f"fabric_rails: {error}")
    except (FabricError, NodeFilesError) as error:
        module.fail_json(msg=f"fabric_rails: {error}.")
    except PermissionError as error:
        module.fail_json(
            msg=f"fabric_rails may not touch {error.filename}: {error.strerror};"
            " the task needs become: true and a user who may use sudo."
        )
    module.exit_json(
        changed=bool(changes or activated),
        changed_paths=[change.path for change in changes],
        backups=rails.backups,
        activated=activated,
        renderer=rails.renderer,
        diff=diff_of(changes) + links,
    )


if __name__ == "__main__":
    main()
