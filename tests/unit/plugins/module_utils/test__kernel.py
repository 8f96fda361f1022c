# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _kernel

OLD, NEW = "6.17.0-1014-nvidia", "6.17.0-1029-nvidia"


class Notes(list):
    def __call__(self, source, reason, evidence):
        self.append((source, reason, evidence))


@pytest.fixture
def notes():
    return Notes()


def entry(version, title=None, mark="advanced"):
    return (
        f"menuentry '{title or f'Ubuntu, with Linux {version}'}' --class ubuntu $menuentry_id_option 'gnulinux-{version}-{mark}-UUID' {{\n"
        "\trecordfail\n\tif [ x$grub_platform = xxen ]; then insmod xzio; fi\n"
        f"\tlinux\t/boot/vmlinuz-{version} root=UUID=x ro\n\tinitrd\t/boot/initrd.img-{version}\n}}\n"
    )


def menu(default="0", versions=(NEW, OLD)):
    inner = "".join(entry(version) + entry(version, f"Ubuntu, with Linux {version} (recovery mode)", "recovery") for version in versions)
    return (
        'if [ -s $prefix/grubenv ]; then\n  load_env\nfi\nif [ "${next_entry}" ] ; then\n   set default="${next_entry}"\n   set next_entry=\nelse\n'
        f'   set default="{default}"\nfi\nfunction savedefault {{\n  if [ -z "${{boot_once}}" ]; then\n    save_env saved_entry\n  fi\n}}\n'
        f"menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-UUID' {{\n\tlinux\t/boot/vmlinuz-{versions[0]} root=UUID=x\n}}\n"
        f"submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-UUID' {{\n{inner}}}\n"
        "menuentry 'UEFI Firmware Settings' --id 'uefi-firmware' {\n\tfwsetup\n}\n"
    )


@pytest.fixture
def node(tree):
    """A node with two kernels, of which only the new one has NVIDIA's module."""
    for version in (OLD, NEW):
        tree.write(f"boot/vmlinuz-{version}", "")
        tree.write(f"lib/modules/{version}/modules.dep", "kernel/net/x.ko:\n")
    tree.write("boot/initrd.img-" + NEW, "")
    tree.write(f"lib/modules/{NEW}/kernel/nvidia-580-open/nvidia.ko", "")
    tree.write("boot/grub/grub.cfg", menu())
    tree.write("boot/grub/grubenv", "# GRUB Environment Block\n" + "#" * 900)
    tree.write("etc/default/grub", "GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\n")
    return tree


@pytest.fixture
def closed(node, monkeypatch):
    """The same for a user who may not read the boot menu."""
    (node.path / "boot/grub/grub.cfg").unlink()
    hidden = str(node.path / "boot/grub/grub.cfg")
    monkeypatch.setattr(_kernel, "is_denied", lambda *parts: "/".join(parts) == hidden)
    return node


def set_choice(node, **values):
    node.write("boot/grub/grubenv", "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in values.items()) + "#" * 800)


def test_menu():
    entries, default = _kernel.parse_menu(menu("${saved_entry}"))
    assert default == "${saved_entry}"
    assert [(found["title"], found["id"], found["kernel"], len(found["entries"])) for found in entries] == [
        ("Ubuntu", "gnulinux-simple-UUID", f"/boot/vmlinuz-{NEW}", 0),
        ("Advanced options for Ubuntu", "gnulinux-advanced-UUID", None, 4),
        ("UEFI Firmware Settings", "uefi-firmware", None, 0),
    ]
    assert entries[1]["entries"][2]["kernel"] == f"/boot/vmlinuz-{OLD}"
    assert _kernel.parse_menu("}\n}\nlinux /x\nmenuentry a { }\nmenuentry\n") == (
        [{"title": "a", "id": None, "kernel": None, "entries": []}], "0",
    )


@pytest.mark.parametrize(
    "choice, version",
    [
        ("0", NEW), ("", NEW), ("1", NEW), ("1>2", OLD), ("1>1", NEW), ("Advanced options for Ubuntu>Ubuntu, with Linux " + OLD, OLD),
        (f"gnulinux-advanced-UUID>gnulinux-{OLD}-advanced-UUID", OLD), ("gone", NEW), ("1>gone", NEW), (f"gnulinux-{OLD}-advanced-UUID", NEW),
        ("gnulinux-simple-UUID", NEW),
    ],
)
def test_choices_of_the_menu(node, notes, choice, version):
    node.write("boot/grub/grub.cfg", menu(choice))
    assert _kernel.find_next_boot(node.root, notes) == (version, "grub.cfg default")
    assert notes == []


@pytest.mark.parametrize(
    "default, environment, version, rule",
    [
        ("${saved_entry}", {"saved_entry": f"gnulinux-advanced-UUID>gnulinux-{OLD}-advanced-UUID"}, OLD, "grubenv saved_entry"),
        ("${saved_entry}", {"saved_entry": ""}, NEW, "grub.cfg default"),
        ("${saved_entry}", {}, NEW, "grub.cfg default"),
        ("0", {"saved_entry": "1>2"}, NEW, "grub.cfg default"),
        ("0", {"next_entry": "1>2"}, OLD, "grubenv next_entry"),
        ("2", {}, None, None),
    ],
)
def test_choices_of_the_environment(node, notes, default, environment, version, rule):
    node.write("boot/grub/grub.cfg", menu(default))
    set_choice(node, **environment)
    assert _kernel.find_next_boot(node.root, notes) == (version, rule)


def test_a_kernel_named_by_a_link(node, notes):
    node.link("boot/vmlinuz", f"vmlinuz-{OLD}")
    node.write("boot/grub/grub.cfg", "menuentry x {\n linux /boot/vmlinuz root=x\n}\n")
    assert _kernel.find_next_boot(node.root, notes) == (OLD, "grub.cfg default")


def test_a_menu_without_entries_is_told(node, notes):
    node.write("boot/grub/grub.cfg", "set timeout=1\n")
    assert _kernel.find_next_boot(node.root, notes) == (None, None)
    assert notes == [("/boot/grub/grub.cfg", "not_understood", "It has no menu entry.")]


@pytest.mark.parametrize(
    "settings, environment, version, rule",
    [
        ("GRUB_DEFAULT=0\n", {}, NEW, "newest in /boot"),
        ("", {}, NEW, "newest in /boot"),
        ('GRUB_DEFAULT="0" # first\n', {}, NEW, "newest in /boot"),
        (f"GRUB_DEFAULT='Advanced options for Ubuntu>Ubuntu, with Linux {OLD}'\n", {}, OLD, "GRUB_DEFAULT"),
        (f"GRUB_DEFAULT='Advanced options for Ubuntu>Ubuntu, with Linux {OLD} (recovery mode)'\n", {}, OLD, "GRUB_DEFAULT"),
        ("GRUB_DEFAULT=saved\n", {"saved_entry": f"gnulinux-advanced-U-1>gnulinux-{OLD}-advanced-U-1"}, OLD, "grubenv saved_entry"),
        ("GRUB_DEFAULT=saved\n", {}, NEW, "newest in /boot"),
        ("GRUB_DEFAULT=0\n", {"next_entry": f"gnulinux-advanced-U>gnulinux-{OLD}-recovery-U"}, OLD, "grubenv next_entry"),
        ('GRUB_FLAVOUR_ORDER="nvidia generic"\n', {}, NEW, "newest in /boot"),
        (f'GRUB_TOP_LEVEL="/boot/vmlinuz-{OLD}"\n', {}, OLD, "newest in /boot"),
    ],
)
def test_without_the_menu_its_settings_tell(closed, notes, settings, environment, version, rule):
    closed.write("etc/default/grub", settings)
    set_choice(closed, **environment)
    assert _kernel.find_next_boot(closed.root, notes) == (version, rule)
    assert notes == []


@pytest.mark.parametrize("choice", ["1>2", "Advanced options>Windows", "Advanced options for Ubuntu>Ubuntu, with Linux 5.0.0-1-generic"])
def test_without_the_menu_a_number_is_unread(closed, notes, choice):
    closed.write("etc/default/grub.d/50-own.cfg", f"GRUB_DEFAULT='{choice}'\n")
    closed.write("etc/default/grub.d/README", "GRUB_DEFAULT=0\n")
    assert _kernel.find_next_boot(closed.root, notes) == (None, None)
    assert [note[:2] for note in notes] == [("/boot/grub/grub.cfg", "denied")]


def test_a_saved_choice_that_may_not_be_read(node, notes, monkeypatch):
    node.write("boot/grub/grub.cfg", menu("${saved_entry}"))
    monkeypatch.setattr(_kernel, "is_denied", lambda *parts: parts[-1] == _kernel.ENVIRONMENT)
    assert _kernel.find_next_boot(node.root, notes) == (None, None)
    assert notes[0][:2] == ("/boot/grub/grubenv", "denied")


def test_other_flavours_first(closed, notes):
    closed.write(f"boot/vmlinuz-{NEW}-64k", "")
    closed.write("boot/vmlinuz-6.17.0-1030-generic", "")
    for name in ("vmlinuz-9.0.0-1-nvidia.dpkg-bak", "vmlinuz-9.0.0-1-nvidia.efi.signed", "vmlinuz.old", "config-9.9"):
        closed.write(f"boot/{name}", "")
    assert _kernel.list_images(closed.root) == [OLD, NEW, f"{NEW}-64k", "6.17.0-1030-generic"]
    assert _kernel.find_next_boot(closed.root, notes) == ("6.17.0-1030-generic", "newest in /boot")
    closed.write("etc/default/grub", 'GRUB_FLAVOUR_ORDER="nvidia-64k nvidia"\n')
    assert _kernel.find_next_boot(closed.root, notes)[0] == f"{NEW}-64k"
    closed.write("etc/default/grub", "GRUB_FLAVOUR_ORDER=rt\n")
    assert _kernel.find_next_boot(closed.root, notes)[0] == "6.17.0-1030-generic"


@pytest.mark.parametrize(
    "path, listed, there",
    [
        ("updates/dkms/nvidia.ko.zst", "", True),
        ("updates/dkms/nvidia.ko.xz", "", True),
        ("kernel/nvidia-590/nvidia.ko.gz", "", True),
        ("kernel/drivers/video/nvidia.ko", "", True),
        ("extra/nvidia.ko", "", True),
        ("kernel/own/nvidia.ko", "kernel/own/nvidia.ko: kernel/x.ko\n", True),
        ("kernel/own/other.ko", "kernel/own/nvidia.ko:\n", False),
        ("kernel/own/nvidia.ko", "kernel/drivers/net/ethernet/nvidia/forcedeth.ko:\n", False),
        ("updates/dkms/nvidia-uvm.ko", "", False),
        ("kernel/nvidia-580-open/bits/nv.o", "", False),
    ],
)
def test_where_the_module_may_be(tree, path, listed, there):
    tree.write(f"usr/lib/modules/{NEW}/{path}", "")
    tree.write(f"usr/lib/modules/{NEW}/modules.dep", listed)
    assert _kernel.has_nvidia(tree.root, NEW) is there


def test_kernels_that_are_installed(node):
    node.write("lib/modules/6.14.0-1015-nvidia/modules.dep", "")
    assert _kernel.list_installed(node.root) == [
        {"version": "6.14.0-1015-nvidia", "has_image": False, "has_nvidia": False},
        {"version": OLD, "has_image": True, "has_nvidia": False},
        {"version": NEW, "has_image": True, "has_nvidia": True},
    ]


@pytest.mark.parametrize(
    "line, kho", [("ro quiet", None), ("kho=off ro", "off"), ("kho=0", "off"), ("kho", "on"), ("kho=on kho=n", "off"), ("xkho=off", None), ("kho=y", "on")]
)
def test_kexec_handover(line, kho):
    assert _kernel.parse_kho(line) == kho


@pytest.mark.parametrize("content, on", [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x06", None), (None, None)])
def test_secure_boot(tree, content, on):
    if content is not None:
        tree.write(_kernel.SECURE_BOOT, "").write_bytes(content)
    assert _kernel.read_secure_boot(tree.root) is on


def test_kernel_of_a_node(node, notes):
    node.write("proc/sys/kernel/osrelease", f"{OLD}\n")
    node.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz ro kho=off\n")
    node.write("proc/sys/kernel/random/boot_id", "b1\n")
    node.write("run/reboot-required", "*** System restart required ***\n")
    node.write("run/reboot-required.pkgs", f"linux-image-{NEW}\nlinux-base\nlinux-base\n")
    node.write("sys/module/nvidia/version", "580.142\n")
    node.write("sys/module/mlx5_core/initstate", "live\n")
    for number, name in enumerate(("rp_filter", "arp_ignore", "arp_announce")):
        node.write(f"proc/sys/net/ipv4/conf/all/{name}", f"{number}\n")
    node.write(
        "var/lib/dpkg/status",
        "Package: nvidia-driver-580-open\nStatus: hold ok installed\nVersion: 580.142-0ubuntu1\n\n"
        "Package: libnvidia-compute\nStatus: install ok installed\nVersion: 590.1\n\n"
        "Package: nvidia-driver-570\nStatus: deinstall ok config-files\nVersion: 570.1\n\n"
        f"Package: linux-image-{NEW}\nStatus: install ok half-configured\nVersion: 1\n\nPackage: vim\nStatus: hold ok installed\nVersion: 2\n",
    )
    facts = _kernel.read_kernel(node.root, {}, notes)
    assert facts == {
        "running": OLD,
        "release_flavour": "nvidia",
        "next_boot": NEW,
        "next_boot_rule": "grub.cfg default",
        "next_boot_has_nvidia": True,
        "installed": facts["installed"],
        "command_line": "BOOT_IMAGE=/boot/vmlinuz ro kho=off",
        "kho": "off",
        "held": ["nvidia-driver-580-open", "vim"],
        "driver_packages": [
            {"name": "libnvidia-compute", "version": "590.1", "held": False},
            {"name": "nvidia-driver-580-open", "version": "580.142-0ubuntu1", "held": True},
        ],
        "interrupted": [f"linux-image-{NEW}"],
        "pending_reboot": True,
        "pending_reboot_packages": ["linux-base", f"linux-image-{NEW}"],
        "boot_id": "b1",
        "modules": {"nvidia": "580.142", "nvidia_peermem": False, "mlx5_core": True},
        "secure_boot": None,
        "sysctl": {"rp_filter": 0, "arp_ignore": 1, "arp_announce": 2},
    }
    assert notes == []


def test_the_next_kernel_without_a_module(node, notes):
    node.write("boot/grub/grub.cfg", menu("1>2"))
    facts = _kernel.read_kernel(node.root, {}, notes)
    assert (facts["next_boot"], facts["next_boot_has_nvidia"]) == (OLD, False)


@pytest.mark.parametrize("release, flavour", [("6.17.0-1029-nvidia-64k", "nvidia-64k"), ("6.8.0-31-generic", "generic"), ("6.18.44-fc", None)])
def test_flavours(tree, notes, release, flavour):
    tree.write("proc/sys/kernel/osrelease", release)
    assert _kernel.read_kernel(tree.root, {}, notes)["release_flavour"] == flavour


def test_a_node_without_kernels_of_its_own_knows_no_next_one(tree, notes):
    tree.write("boot/grub/grub.cfg", menu())
    facts = _kernel.read_kernel(tree.root, {}, notes)
    assert (facts["next_boot"], facts["next_boot_rule"], facts["next_boot_has_nvidia"]) == (None, None, None)
    assert (facts["installed"], facts["running"], facts["command_line"], facts["pending_reboot"]) == ([], None, None, False)
    assert facts["modules"] == dict.fromkeys(facts["modules"], False)
    assert notes == []


def test_a_package_database_that_is_not_understood_is_told(tree, notes):
    tree.write("var/lib/dpkg/status", "nothing of dpkg's\n")
    assert _kernel.read_kernel(tree.root, {}, notes)["driver_packages"] == []
    assert notes == [("/var/lib/dpkg/status", "not_understood", "nothing of dpkg's")]


def test_a_boot_folder_for_root_alone_is_told(tree, notes, monkeypatch):
    monkeypatch.setattr(_kernel, "is_denied", lambda root, path: path == "boot")
    assert _kernel.find_next_boot(tree.root, notes) == (None, None)
    assert [note[:2] for note in notes] == [("/boot", "denied")]
