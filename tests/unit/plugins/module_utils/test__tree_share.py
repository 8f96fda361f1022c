# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.gb10.fleet.plugins.module_utils import _tree_share

# rsync 3.2.7 --stats, Debian 12.
STATS = """
Number of files: 2 (reg: 2)
Number of regular files transferred: 2
Total file size: 500,000,355 bytes
Literal data: 398,000,000 bytes
Total bytes sent: 137
Total bytes received: 398,168,601

sent 137 bytes  received 398,168,601 bytes  41,912,498.74 bytes/sec
total size is 500,000,355  speedup is 1.26
"""


def test_the_daemon_gives_one_folder_to_the_peers_only():
    lines = _tree_share.configuration("/m/tiny", "192.168.100.10", 8730, ["192.168.100.11", "192.168.100.12"]).splitlines()
    module = lines.index("[tree]")
    assert {"address = 192.168.100.10", "port = 8730"} <= set(lines[:module])
    assert {"path = /m/tiny", "read only = yes", "hosts allow = 192.168.100.11 192.168.100.12", "hosts deny = *"} <= set(lines[module:])


def test_the_unit_has_no_rights_and_an_end():
    command = _tree_share.unit_command("/bin/rsync", "gb10", 60)
    rsync = command.index("/bin/rsync")
    assert {"--unit=gb10-share.service", "--collect", "--property=User=gb10", "--property=RuntimeMaxSec=60",
            "--property=CapabilityBoundingSet=", "--property=ProtectSystem=strict"} <= set(command[:rsync])
    assert command[rsync:] == ["/bin/rsync", "--daemon", "--no-detach", "--config=/run/gb10-share/rsyncd.conf"]


def test_a_fetch_goes_on_where_it_ended():
    command = _tree_share.fetch_command("/bin/rsync", "rsync://h/tree/", "/m/tiny.partial")
    assert command[0] == "/bin/rsync" and command[-2:] == ["rsync://h/tree/", "/m/tiny.partial"]
    assert {"--append", "--from0", "--files-from=-", "--stats"} <= set(command)


def test_the_bytes_of_a_transfer():
    assert _tree_share.received_bytes(STATS) == 398168601
    assert _tree_share.received_bytes("rsync: failed") == 0
