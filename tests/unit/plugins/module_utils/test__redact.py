# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._redact import redact, scrub, scrub_text
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "text, scrubbed",
    [
        ("root=UUID=0a1b2c3d-1111-2222-3333-444455556666 ro", "root=UUID=REDACTED ro"),
        ("GPU-11111111-2222-3333-4444-555555555501", "GPU-REDACTED"),
        ("BOOTIF=01-5c-0a-11-e8-9f-30", "BOOTIF=REDACTED"),
        ("wlan0-5c:0a:11:e8:9f:30", "wlan0-REDACTED"),
        (":5c:0a:11:e8:9f:30:", ":REDACTED:"),
        ("80:00:02:08:fe:80:00:00:00:00:00:00:5e:0a:11:ff:fe:e8:9f:30", "REDACTED"),
        ("at 5c:0A:11:e8:9f:30, again", "at REDACTED, again"),
        ("5e0a:1103:0077:1c17", "REDACTED"),
        ("5e0a:11ff:fee8:9f30", "REDACTED"),
        ("fe80::5e0a:11ff:fee8:9f30/64", "fe80::/64"),
        ("fe80:0000:0000:0000:5e0a:11ff:fee8:9f30", "fe80:0000:0000:0000::"),
        ("fe80::ff:fe00:1/64", "fe80::/64"),
        ("2001:db8:1:2:5e0a:11ff:fee8:9f30/64", "2001:db8:1:2::/64"),
        ("2001:db8::5e0a:11ff:fee8:9f30/64", "2001:db8::/64"),
        ("enx5c0a11e89f30", "enxREDACTED"),
        ('DGX_SERIAL_NUMBER="1234567890"', 'DGX_SERIAL_NUMBER="REDACTED"'),
        ("Serial Number: 1234567890", "Serial Number: REDACTED"),
        ("Device ID: 362301da643102b9f38477387e2193e57abaa590", "Device ID: REDACTED"),
        ("systemd.machine_id=0123456789abcdef0123456789abcdef", "systemd.machine_id=REDACTED"),
    ],
)
def test_what_tells_a_machine_goes(text, scrubbed):
    assert scrub_text(text) == scrubbed
    assert scrub_text(scrubbed) == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "192.168.100.10/24", "::1/128", "::ffff:192.168.100.10", "0000:01:00.0", "0000000F:01:00.0", "0002:01:00.1", "enP2p1s0f0np0", "28.45.4028",
        "9A.0B.25.00.00", "2026-11-30 12:00:00", "cuda-12.8-0.32.0-0123456789ab", "NVD0000000087", "console=ttyS0", "2001:db8::1/64", "fe80::1/64", "",
    ],
)
def test_what_tells_a_kind_stays(text):
    assert scrub_text(text) == text


def test_keys_stay():
    value = {
        "mac": "5c:0a:11:e8:9f:30", "uuid": "GPU-1", "boot_id": "a77c367e-4349-4dc4-a067-23f4d7c88bfd", "guid": "3d13c989-e6a8-4ead-95ee-921f09868f65",
        "guids": ["3d13c989-e6a8-4ead-95ee-921f09868f65"], "build_id": "5d1f0c6f8f3e6a3c2f0f4b1b9f7a2a4f0e8d9c1b", "list": [{"uuid": None}, 1, None],
    }
    assert scrub(value) == {**value, "mac": None, "uuid": None}


def test_gids_of_an_address_stay():
    gids = [{"gid": f"gid-{ipv4}", "ipv4": ipv4} for ipv4 in (None, "192.168.100.10")]
    redacted = redact({"rdma": {"devices": [{"gids": gids}]}})
    assert [gid["gid"] for gid in redacted["rdma"]["devices"][0]["gids"]] == [None, "gid-192.168.100.10"]
    assert gids[0]["gid"] == "gid-None"
    assert redact({}) == {}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="0123456789abcdefABCDEF:-./ \nxserial", max_size=80), st.binary(min_size=6, max_size=6))
def test_a_mac_goes_whatever_stands_around(text, mac):
    for separator in ":-":
        written = mac.hex(separator)
        assert written not in scrub_text(f"{text} {written} {text}")
