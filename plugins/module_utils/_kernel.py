# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kernel runs, which one boots next, and whether NVIDIA's module is there for it. Files in, data out."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._dpkg import STATUS, is_driver, read_half_done, read_packages, version_key
from ansible_collections.gb10.fleet.plugins.module_utils._files import (
    file_status, is_denied, is_directory, is_file, link_target_name, list_names, read_bytes, read_number, read_text,
)

PROBES: dict[str, tuple[str, ...]] = {}
MENU = "boot/grub/grub.cfg"
ENVIRONMENT = "boot/grub/grubenv"
SETTINGS = "etc/default/grub"
REBOOT = "run/reboot-required"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_MODULES = ("nvidia", "nvidia_peermem", "mlx5_core")
_SYSCTLS = ("rp_filter", "arp_ignore", "arp_announce")
_QUOTED = r"('[^']*'|\"[^\"]*\"|[^\s{]+)"
_ENTRY = re.compile(r"^(menuentry|submenu)\s+" + _QUOTED)
_ENTRY_ID = re.compile(r"(?:\$menuentry_id_option|--id)[\s=]+" + _QUOTED)
_LINUX = re.compile(r"^linux(?:16|efi)?\s+(\S+)")
_DEFAULT = re.compile(r"^set\s+default=(.*)$")
_SETTING = re.compile(r"^\s*(?:export\s+)?(GRUB_[A-Z_]+)=('[^']*'|\"[^\"]*\"|[^\s#]*)")
_IMAGE = re.compile(r"vmlinu[xz]-(.+)$")
_VERSION_IN_NAME = re.compile(r"(?:gnulinux-|with Linux )(\d+\.\d+\S*?)(?:-(?:advanced|recovery|init-\w+)-\S+|\s.*|)$")
_FLAVOUR = re.compile(r"^\d+\.\d+(?:\.\d+)?-\d+-(.+)$")
_NVIDIA = re.compile(r"^nvidia\.ko(?:\.(?:zst|xz|gz))?$")
# grub-mkconfig does not take these for kernels.
_NO_KERNEL = re.compile(r"\.(?:dpkg-\w+|rpmsave|rpmnew|old|bak|efi\.signed|signed|sig)$")
_MODULE_LIST_LIMIT = 4 << 20
_LONGEST_EVIDENCE = 200

Note = t.Callable[[str, str, str], None]


def _bare(quoted: str) -> str:
    quoted = quoted.strip()
    return quoted[1:-1] if len(quoted) >= 2 and quoted[0] == quoted[-1] and quoted[0] in "'\"" else quoted


def parse_menu(text: str) -> tuple[list[dict[str, t.Any]], str]:
    """Entries of a grub.cfg, those of submenus within them, and the last default that it sets beside a one-time choice.

    An entry is {title, id, kernel (path or None), entries (of a submenu)}.
    """
    top: list[dict[str, t.Any]] = []
    open_blocks: list[dict[str, t.Any] | None] = []
    default = "0"
    for line in text.splitlines():
        line = line.strip()
        entry = _ENTRY.match(line)
        if entry:
            found_id = _ENTRY_ID.search(line)
            made = {"title": _bare(entry.group(2)), "id": _bare(found_id.group(1)) if found_id else None, "kernel": None, "entries": []}
            parent = next((block for block in reversed(open_blocks) if block), None)
            (parent["entries"] if parent else top).append(made)
            if not line.endswith("}"):
                open_blocks.append(made)
        elif line == "}":
            if open_blocks:
                open_blocks.pop()
        elif line.endswith("{"):
            open_blocks.append(None)
        else:
            image, setting = _LINUX.match(line), _DEFAULT.match(line)
            if image and open_blocks and open_blocks[-1] and open_blocks[-1]["kernel"] is None:
                open_blocks[-1]["kernel"] = image.group(1)
            elif setting and "next_entry" not in setting.group(1) and not any(open_blocks):
                default = _bare(setting.group(1))
    return top, default


def parse_environment(text: str) -> dict[str, str]:
    """Variables of a GRUB environment block; what fills it up to 1024 bytes is none."""
    values = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            values[key.strip()] = value.strip()
    return values


def parse_settings(texts: t.Iterable[str]) -> dict[str, str]:
    """GRUB_NAME=VALUE of /etc/default/grub and its drop-ins; the last one wins."""
    values = {}
    for text in texts:
        for line in text.splitlines():
            found = _SETTING.match(line)
            if found:
                values[found.group(1)] = _bare(found.group(2))
    return values


def select_entry(entries: t.Sequence[dict[str, t.Any]], choice: str) -> dict[str, t.Any] | None:
    """The entry that GRUB boots for a choice by number, title or id, > before what is in a submenu; the first one for no such."""
    level: t.Sequence[dict[str, t.Any]] = entries
    found = None
    for part in choice.split(">"):
        found = next((entry for number, entry in enumerate(level) if part.strip() in (str(number), entry["title"], entry["id"])), None)
        if found is None:
            break
        level = found["entries"]
    if found is None:
        found = entries[0] if entries else None
    while found and found["entries"]:
        found = found["entries"][0]
    return found


def list_images(root: str) -> list[str]:
    """Versions of the kernels in /boot, the oldest first."""
    found = [match.group(1) for name in list_names(root, "boot") for match in [_IMAGE.match(name)] if match]
    return sorted((version for version in found if not _NO_KERNEL.search(version)), key=version_key)


def _image_version(root: str, path: str) -> str | None:
    """Version of a kernel by the name of its file; /boot/vmlinuz is a link to one."""
    name = path.rstrip("/").rpartition("/")[2]
    match = _IMAGE.match(name) or _IMAGE.match(link_target_name(root, "boot", name) or link_target_name(root, name) or "")
    return match.group(1) if match else None


def _newest(images: t.Sequence[str], settings: t.Mapping[str, str]) -> str:
    """The first kernel of GRUB's menu: the named one, else the newest of the first flavour that is there, else the newest."""
    named = _IMAGE.match(settings.get("GRUB_TOP_LEVEL", "").rpartition("/")[2])
    if named and named.group(1) in images:
        return named.group(1)
    for flavour in settings.get("GRUB_FLAVOUR_ORDER", "").split():
        of_flavour = [version for version in images if version.endswith(f"-{flavour}")]
        if of_flavour:
            return of_flavour[-1]
    return images[-1]


def _version_in_choice(choice: str, images: t.Sequence[str]) -> str | None:
    found = _VERSION_IN_NAME.search(choice.rpartition(">")[2].strip())
    return found.group(1) if found and found.group(1) in images else None


def find_next_boot(root: str, note: Note) -> tuple[str | None, str | None]:
    """The version of the kernel that boots next, and how it was found.

    grub.cfg tells it, with the choices that grubenv holds. Where a normal user may not read it, the settings that it is made
    of do for the usual default, and a choice that names its kernel.
    """
    images = list_images(root)
    if not images:
        if is_denied(root, "boot"):
            note("/boot", "denied", "Only root may see which kernels are there.")
        return None, None
    names = list_names(root, f"{SETTINGS}.d")
    texts = [read_text(root, SETTINGS)] + [read_text(root, f"{SETTINGS}.d", name) for name in names if name.endswith(".cfg")]
    settings = parse_settings(text for text in texts if text)
    environment = parse_environment(read_text(root, ENVIRONMENT) or "")
    menu = read_text(root, MENU)
    entries, default = parse_menu(menu) if menu else ([], settings.get("GRUB_DEFAULT", "0"))
    saved = "saved_entry" in default if menu else default == "saved"
    if saved and is_denied(root, ENVIRONMENT):
        note(f"/{ENVIRONMENT}", "denied", "The saved choice of the boot menu is there.")
        return None, None
    if environment.get("next_entry"):
        choice, rule = environment["next_entry"], "grubenv next_entry"
    elif saved and environment.get("saved_entry"):
        choice, rule = environment["saved_entry"], "grubenv saved_entry"
    else:
        choice, rule = "0" if saved else default, "grub.cfg default" if menu else "GRUB_DEFAULT"
    if menu:
        entry = select_entry(entries, choice)
        if entry is None:
            note(f"/{MENU}", "not_understood", "It has no menu entry.")
        return (_image_version(root, entry["kernel"]), rule) if entry and entry["kernel"] else (None, None)
    named = _version_in_choice(choice, images)
    if named:
        return named, rule
    if choice in ("", "0"):
        return _newest(images, settings), "newest in /boot"
    if is_denied(root, MENU):
        note(f"/{MENU}", "denied", f"The boot menu's choice is '{choice}', and only root may read which kernel that is.")
    return None, None


def _module_folder(root: str, version: str) -> str:
    return next((path for path in (f"lib/modules/{version}", f"usr/lib/modules/{version}") if is_directory(root, path)), f"lib/modules/{version}")


def has_nvidia(root: str, version: str) -> bool:
    """Whether NVIDIA's module is there for a kernel: from DKMS, from Ubuntu's prebuilt packages, or wherever depmod found it."""
    base = _module_folder(root, version)
    folders = ["updates/dkms", "updates", "extra", "weak-updates", "kernel/drivers/video"]
    folders += [f"kernel/{name}" for name in list_names(root, base, "kernel") if name.startswith("nvidia")]
    for folder in folders:
        if any(_NVIDIA.match(name) for name in list_names(root, base, folder)):
            return True
    listed = read_text(root, base, "modules.dep", limit=_MODULE_LIST_LIMIT) or ""
    at = listed.find("/nvidia.ko")
    while at >= 0:
        path = listed[listed.rfind("\n", 0, at) + 1:at + len("/nvidia.ko.zst")].partition(":")[0]
        if _NVIDIA.match(path.rpartition("/")[2]) and is_file(root, base, path.lstrip("/")):
            return True
        at = listed.find("/nvidia.ko", at + 1)
    return False


def list_installed(root: str) -> list[dict[str, t.Any]]:
    """Kernels that have an image or modules, the oldest first."""
    images = list_images(root)
    folders = {name for path in ("lib/modules", "usr/lib/modules") for name in list_names(root, path) if is_directory(root, path, name)}
    return [
        {"version": version, "has_image": version in images, "has_nvidia": has_nvidia(root, version)}
        for version in sorted({*images, *folders}, key=version_key)
    ]


def parse_kho(command_line: str) -> str | None:
    """on or off where the command line says it of kexec handover, else None: then the kernel's build decides."""
    answer = None
    for word in command_line.split():
        key, equals, value = word.partition("=")
        if key == "kho":
            answer = "off" if equals and value.lower() in ("off", "0", "n", "no") else "on"
    return answer


def module_state(root: str, name: str) -> str | bool:
    """Version of a loaded module, true for one that tells none, false where it is not loaded."""
    if not is_directory(root, "sys/module", name):
        return False
    return read_text(root, "sys/module", name, "version") or True


def read_secure_boot(root: str) -> bool | None:
    """Whether Secure Boot is on; None without UEFI. The variable's value follows four bytes of attributes."""
    content = read_bytes(root, SECURE_BOOT, size=5)
    return content[4] == 1 if content is not None and len(content) == 5 else None


def read_packages_facts(root: str, note: Note) -> dict[str, t.Any]:
    """Held, half-done and driver packages of dpkg's database."""
    packages = read_packages(root) or ()
    if not packages:
        text = read_text(root, STATUS, limit=_LONGEST_EVIDENCE)
        if text:
            note(f"/{STATUS}", "not_understood", text)
    return {
        "held": sorted({package.name for package in packages if package.held}),
        "driver_packages": sorted(
            (
                {"name": package.name, "version": package.version, "held": package.held}
                for package in packages if package.installed and is_driver(package.name)
            ),
            key=lambda package: (package["name"], package["version"] or ""),
        ),
        "interrupted": read_half_done(root, packages),
    }


def read_kernel(root: str, answers: t.Mapping[str, t.Any], note: Note) -> dict[str, t.Any]:
    """Facts of the subset kernel; it asks no tool."""
    running = read_text(root, "proc/sys/kernel/osrelease") or None
    flavour = _FLAVOUR.match(running or "")
    command_line = read_text(root, "proc/cmdline")
    next_boot, rule = find_next_boot(root, note)
    required = [path for path in (REBOOT, f"var/{REBOOT}") if file_status(root, path)]
    packages = (read_text(root, f"{required[0]}.pkgs") or "") if required else ""
    return {
        "running": running,
        "release_flavour": flavour.group(1) if flavour else None,
        "next_boot": next_boot,
        "next_boot_rule": rule,
        "next_boot_has_nvidia": has_nvidia(root, next_boot) if next_boot else None,
        "installed": list_installed(root),
        "command_line": command_line,
        "kho": parse_kho(command_line or ""),
        **read_packages_facts(root, note),
        "pending_reboot": bool(required),
        "pending_reboot_packages": sorted({line.strip() for line in packages.splitlines() if line.strip()}),
        "boot_id": read_text(root, "proc/sys/kernel/random/boot_id") or None,
        "modules": {name: module_state(root, name) for name in _MODULES},
        "secure_boot": read_secure_boot(root),
        "sysctl": {name: read_number(root, "proc/sys/net/ipv4/conf/all", name) for name in _SYSCTLS},
    }
