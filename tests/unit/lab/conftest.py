# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's program is no plugin: it lies with the role that uses it."""

from __future__ import annotations

import sys
from pathlib import Path

FILES = Path(__file__).resolve().parents[3] / "roles" / "lab" / "files"
for folder in (FILES, FILES / "node_side"):
    sys.path.insert(0, str(folder))
