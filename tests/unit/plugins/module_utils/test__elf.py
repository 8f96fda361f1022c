# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import struct
import sys

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _elf

BUILD_ID = bytes(range(20))


def note(name=b"GNU\0", value=BUILD_ID, kind=3, order="<", alignment=4):
    """One ELF note."""
    def pad(content):
        return content + b"\0" * (-len(content) % alignment)

    return struct.pack(f"{order}III", len(name), len(value), kind) + pad(name) + pad(value)


def elf(*segments, wide=True, order="<", size=None, count=None, table=None):
    """An ELF file of segments (type, content, alignment)."""
    head, layout = (64, f"{order}IIQQQQQQ") if wide else (52, f"{order}IIIIIIII")
    step = struct.calcsize(layout)
    at = head + step * len(segments)
    entries, contents = b"", b""
    for kind, content, alignment in segments:
        words = (kind, 4, at, 0, 0, len(content), len(content), alignment) if wide else (kind, at, 0, 0, len(content), len(content), 4, alignment)
        entries += struct.pack(layout, *words)
        contents += content
        at += len(content)
    begin = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + b"\0" * 9
    begin += struct.pack(f"{order}HHI", 3, 183, 1) + struct.pack(f"{order}{'QQQ' if wide else 'III'}", 0, head if table is None else table, 0)
    begin += struct.pack(f"{order}IHHHHHH", 0, head, step if size is None else size, len(segments) if count is None else count, 0, 0, 0)
    return begin + entries + contents


def read(content):
    return _elf.read_build_id(lambda offset, size: content[offset:offset + size])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_build_id(wide, order):
    other = note(b"GNU\0", b"\0" * 16, 1, order) + note(b"stapsdt\0", b"abc", 3, order)
    content = elf((1, b"code", 16), (4, other, 4), (4, note(order=order), 4), wide=wide, order=order)
    assert read(content) == BUILD_ID.hex()


def test_notes_of_eight_bytes_alignment():
    property_note = note(b"GNU\0", b"\1" * 12, 5, alignment=8)
    assert read(elf((4, property_note + note(alignment=8), 8))) == BUILD_ID.hex()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#!/bin/sh\n" * 10,
        b"\x7fELF",
        elf((4, note(), 4))[:60],
        b"\x7fELF\x03" + elf((4, note(), 4))[5:],
        elf((4, note(), 4), count=0),
        elf((4, note(), 4), count=60000),
        elf((4, note(), 4), size=8),
        elf((4, note(), 4), table=1 << 63),
        elf((4, note(), 4), table=1 << 40),
        elf((1, note(), 4)),
        elf((4, note(value=b""), 4)),
        elf((4, note()[:-4], 4)),
        elf((4, b"\xff" * 40, 4)),
        elf((4, b"", 4)),
    ],
)
def test_files_without_a_build_id(content):
    assert read(content) is None


def test_a_file_that_cannot_be_read():
    assert _elf.read_build_id(lambda offset, size: None) is None


def test_few_bytes_of_a_large_file_are_read():
    content = elf((1, b"c" * 5000000, 16), (4, note(), 4))
    asked = []
    assert _elf.read_build_id(lambda offset, size: asked.append(size) or content[offset:offset + size]) == BUILD_ID.hex()
    assert sum(asked) < 1000


def test_the_python_that_runs_this():
    with open(sys.executable, "rb") as file:
        content = file.read(1 << 20)
    assert content[:4] != b"\x7fELF" or read(content) is None or len(read(content)) >= 16
