# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of files known by their SHA-256: what is in one, what is wrong with it, and how to get from one to another."""

from __future__ import annotations

import concurrent.futures
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import typing as t

PIECE = 8 << 20
FILE_MODE = 0o644
FOLDER_MODE = 0o755
# What a clone or a download keeps for itself beside the model.
LEFT_OUT = (".git", ".cache")
INCOMPLETE = ".incomplete"
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LONGEST_POINTER = 1024
LONGEST_HEADER = 100_000_000
# The ioctl that shares blocks between two files until one of them is written, where the file system can.
FICLONE = 0x40049409

File = t.Dict[str, t.Any]


def partial_path(path: str) -> str:
    """Where a tree is built before it takes its place."""
    return f"{path}.partial"


def old_path(path: str) -> str:
    """Where the earlier tree lies while the new one takes its place."""
    return f"{path}.old"


def tree_digest(files: t.Iterable[t.Mapping[str, t.Any]]) -> str:
    """One SHA-256 over names, sizes and contents of a tree, the same on every node.

    Args:
        files: mappings with path, size and sha256, in any order.
    """
    total = hashlib.sha256()
    for file in sorted(files, key=lambda file: file["path"]):
        total.update(f"{file['sha256']} {file['size']} {file['path']}\0".encode())
    return total.hexdigest()


def check_paths(files: t.Iterable[t.Mapping[str, t.Any]]) -> None:
    """Refuse a manifest that would lead out of its folder.

    Raises:
        ValueError: a path is absolute, or has an empty part, . or .. in it.
    """
    for file in files:
        if any(part in ("", ".", "..") for part in file["path"].split("/")):
            raise ValueError(f"{file['path']} is not a path inside a tree")


def safetensors_problem(path: str, size: int) -> str | None:
    """What is wrong with a safetensors file by its header, which says where its last tensor ends; None when it is whole."""
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= min(LONGEST_HEADER, size - 8):
            return "is cut off or no safetensors file"
        try:
            header = json.loads(stream.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return "is no safetensors file"
    expected = 8 + length + max(ends, default=0)
    return None if expected == size else f"has {size} bytes instead of the {expected} that its header tells"


def content_problem(path: str, size: int) -> str | None:
    """What is wrong with a file's content, None when nothing is known to be.

    Raises:
        OSError: it cannot be read.
    """
    if size <= LONGEST_POINTER:
        with open(path, "rb") as stream:
            if stream.read(len(LFS_POINTER)) == LFS_POINTER:
                return "is a git-LFS pointer instead of the file, which git lfs pull fetches"
    return safetensors_problem(path, size) if path.endswith(".safetensors") else None


def missing_shards(root: str, files: t.Container[str], index: str) -> list[str]:
    """Sentences on what an index of shards names and the tree lacks."""
    try:
        with open(os.path.join(root, index), encoding="utf-8") as stream:
            shards = sorted(set(json.load(stream)["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"{index} is no index of shards"]
    folder = os.path.dirname(index)
    return [f"{shard}, which {index} names, is missing" for shard in shards if os.path.join(folder, shard) not in files]


def file_digest(path: str) -> str:
    """SHA-256 of a file's content in hexadecimal digits."""
    total = hashlib.sha256()
    with open(path, "rb", buffering=0) as stream:
        buffer = memoryview(bytearray(PIECE))
        while True:
            length = stream.readinto(buffer)
            if not length:
                return total.hexdigest()
            total.update(buffer[:length])


def copy_file(source: str, target: str) -> str:
    """Copy one file's content into a new file, which later writes to the first do not reach; returns its SHA-256."""
    total = hashlib.sha256()
    with open(source, "rb", buffering=0) as reader, open(target, "xb", buffering=0) as writer:
        try:
            fcntl.ioctl(writer.fileno(), FICLONE, reader.fileno())
        except OSError:
            while True:
                piece = reader.read(PIECE)
                if not piece:
                    return total.hexdigest()
                total.update(piece)
                rest = memoryview(piece)
                while rest:
                    rest = rest[writer.write(rest):]
    return file_digest(target)


def stamp(status: os.stat_result) -> list[int]:
    """What changes when a file is written or replaced: while it is the same, so is the content."""
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def is_plain(status: os.stat_result) -> bool:
    """Whether mode and owner are those of an installed file or folder: root's, and readable by everybody."""
    wanted = FOLDER_MODE if stat.S_ISDIR(status.st_mode) else FILE_MODE
    return (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (wanted, os.geteuid(), os.getegid())


def make_plain(path: str) -> bool:
    """Give a file or folder mode and owner of an installed one; returns whether they differed."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode) or is_plain(status):
        return False
    os.chown(path, os.geteuid(), os.getegid())
    os.chmod(path, FOLDER_MODE if stat.S_ISDIR(status.st_mode) else FILE_MODE)
    return True


class Tree:
    """Names and states of what is in a folder, and what is wrong with it. Contents are read by `scan` only."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.exists = os.path.isdir(self.root)
        self.files: dict[str, os.stat_result] = {}
        self.problems: list[str] = []
        self.readable = True
        self.plain = True
        pending = [""] if self.exists else []
        while pending:
            pending.extend(self._read_folder(pending.pop()))

    def _read_folder(self, folder: str) -> list[str]:
        """Take in one folder; returns those in it."""
        try:
            with os.scandir(os.path.join(self.root, folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            status = os.stat(os.path.join(self.root, folder))
        except OSError as error:
            self.problems.append(f"{folder or self.root} cannot be read: {error.strerror}")
            return []
        kept = folder.split("/")[0] not in LEFT_OUT
        if kept:
            self.readable = self.readable and status.st_mode & 0o5 == 0o5
            self.plain = self.plain and is_plain(status)
        folders = []
        for entry in found:
            path = os.path.join(folder, entry.name)
            if entry.name.endswith(INCOMPLETE):
                self.problems.append(f"{path} is a download that did not end")
            elif entry.is_dir(follow_symlinks=False):
                if path != ".git":
                    folders.append(path)
            elif kept:
                self._read_entry(path, entry)
        return folders

    def _read_entry(self, path: str, entry: os.DirEntry[str]) -> None:
        """Take in what is no folder."""
        try:
            path.encode()
            status = entry.stat()
        except UnicodeEncodeError:
            self.problems.append(f"{ascii(path)} has a name that is not UTF-8")
            return
        except OSError as error:
            self.problems.append(
                f"{path} is a link to nothing" if entry.is_symlink() else f"{path} cannot be read: {error.strerror}"
            )
            return
        if not stat.S_ISREG(status.st_mode):
            self.problems.append(f"{path} is neither a file nor a link to one")
            return
        if entry.is_symlink():
            owner = entry.stat(follow_symlinks=False).st_uid
            # Root reads for us: somebody's link must not publish a file that he cannot read himself.
            if owner not in (0, status.st_uid) and not status.st_mode & 0o4:
                self.problems.append(f"{path} is a link to a file of somebody else that others may not read")
                return
        self.readable = self.readable and bool(status.st_mode & 0o4)
        self.plain = self.plain and not entry.is_symlink() and is_plain(status)
        self.files[path] = status


def scan(root: str, seen: dict[str, list[t.Any]]) -> dict[str, t.Any]:
    """Every file of a folder with its SHA-256.

    Args:
        root: the folder. Links to files in it count as the files.
        seen: sums of earlier scans by absolute path, [size, mtime_ns, inode, sha256]. Brought up to date in place.

    Returns:
        {exists, files: [{path, size, sha256}], bytes, digest (None without a file), problems: [sentences], readable (by every
        user), plain (modes and owners are those of an installed tree)}. Files with a problem are not in files.
    """
    tree = Tree(root)
    problems = list(tree.problems)
    absolute = {path: os.path.join(tree.root, path) for path in tree.files}
    sums: dict[str, str] = {}
    unknown = []
    for path, status in tree.files.items():
        known = seen.get(absolute[path])
        if known and known[:3] == stamp(status):
            sums[path] = known[3]
        else:
            unknown.append(path)

    def read(path: str) -> tuple[str | None, str | None]:
        try:
            problem = content_problem(absolute[path], tree.files[path].st_size)
            return (None, f"{path} {problem}") if problem else (file_digest(absolute[path]), None)
        except OSError as error:
            return None, f"{path} cannot be read: {error.strerror}"

    # Hashing and reading let go of the interpreter's lock, so threads use several cores.
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for path, (total, problem) in zip(unknown, pool.map(read, unknown)):
            if total:
                sums[path] = total
            else:
                problems.append(problem)
    for path in sorted(tree.files):
        if path.endswith(".safetensors.index.json") and path in sums:
            problems.extend(missing_shards(tree.root, tree.files, path))
    inside = os.path.join(tree.root, "")
    for path in [path for path in seen if path.startswith(inside)]:
        del seen[path]
    seen.update({absolute[path]: [*stamp(tree.files[path]), total] for path, total in sums.items()})
    files = [{"path": path, "size": tree.files[path].st_size, "sha256": sums[path]} for path in sorted(sums)]
    if tree.exists and not tree.files and not problems:
        problems.append("it holds no file")
    return {
        "exists": tree.exists,
        "files": files,
        "bytes": sum(file["size"] for file in files),
        "digest": tree_digest(files) if files else None,
        "problems": problems,
        "readable": tree.readable,
        "plain": tree.plain,
    }


def installed_state(path: str, record: t.Mapping[str, t.Any] | None, seen: dict[str, list[t.Any]]) -> dict[str, t.Any]:
    """What lies where a tree is to be installed.

    Args:
        path: where it is to be.
        record: what we recorded when we installed something there, None when we did not.
        seen: as in scan.

    Returns:
        {exists, digest (None when there is none, or when files have problems), foreign: somebody else put something there,
        sound: it is as recorded, modes and owners are right, and no half-built tree lies beside it}.
    """
    found = scan(path, seen) if record else {"plain": False, "digest": None, "problems": []}
    beside = [name for name in (partial_path(path), old_path(path)) if os.path.lexists(name)]
    return {
        "exists": os.path.lexists(path),
        "digest": None if found["problems"] else found["digest"],
        "foreign": record is None and (os.path.lexists(path) or bool(beside)),
        "sound": record is not None and found["digest"] == record.get("digest") and found["plain"] and not beside,
    }


def read_record(path: str | None) -> dict[str, t.Any] | None:
    """What is recorded of an installed tree: {path, digest, bytes, files, seen}, None when there is no record.

    Raises:
        ValueError: it is no record.
    """
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as stream:
            record = json.load(stream)
    except FileNotFoundError:
        return None
    except ValueError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("path"), str) or not isinstance(record.get("seen"), dict):
        raise ValueError(f"The record {path} is damaged: remove it and the tree that it is named after, and run again.")
    return record


def write_record(path: str, record: t.Mapping[str, t.Any]) -> None:
    """Write a record that only root reads, whole or not at all."""
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".record-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(record, stream, indent=1, sort_keys=True)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def remove(path: str) -> bool:
    """Remove a file, link or folder with all that is in it; returns whether there was one."""
    if not os.path.lexists(path):
        return False
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
    return True


class Plan(t.NamedTuple):
    """How a wanted tree comes about: paths that are there, (path, earlier path with the same content), and paths to fetch."""

    kept: list[str]
    links: list[tuple[str, str]]
    fetch: list[File]


def pull_plan(wanted: t.Sequence[File], partial: t.Sequence[File], installed: t.Sequence[File]) -> Plan:
    """Take what a broken off copy and the installed tree have by content, so that only the rest crosses the wire.

    Args:
        wanted: files of the manifest.
        partial: files of the half-built tree.
        installed: files of the installed tree.
    """
    there = {file["path"]: file["sha256"] for file in partial}
    earlier = {file["sha256"]: file["path"] for file in installed}
    plan = Plan([], [], [])
    for file in wanted:
        if there.get(file["path"]) == file["sha256"]:
            plan.kept.append(file["path"])
        elif file["sha256"] in earlier:
            plan.links.append((file["path"], earlier[file["sha256"]]))
        else:
            plan.fetch.append(file)
    return plan


def is_start(status: os.stat_result, size: int) -> bool:
    """Whether something may be the start of a file of a size, to be written on. Not so a link into the installed tree."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size < size


def prepare(partial: str, installed: str, plan: Plan) -> None:
    """Make the half-built tree hold what is there already, and nothing that would be in the way of the rest."""
    fetch = {file["path"]: file["size"] for file in plan.fetch}
    wanted = {*plan.kept, *fetch, *(path for path, _earlier in plan.links)}
    if os.path.islink(partial) or not os.path.isdir(partial):
        remove(partial)
    os.makedirs(partial, mode=FOLDER_MODE, exist_ok=True)
    for folder, folders, names in os.walk(partial, topdown=False):
        for name in [*names, *folders]:
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                if not os.listdir(path):
                    os.rmdir(path)
                continue
            relative = os.path.relpath(path, partial)
            if relative not in plan.kept and not is_start(os.lstat(path), fetch.get(relative, 0)):
                os.unlink(path)
    for path in sorted(wanted):
        os.makedirs(os.path.dirname(os.path.join(partial, path)), mode=FOLDER_MODE, exist_ok=True)
    for path, earlier in plan.links:
        target = os.path.join(partial, path)
        remove(target)
        os.link(os.path.join(installed, earlier), target)


def make_tree_plain(root: str) -> list[str]:
    """Give everything in a tree mode and owner of an installed one; returns the paths that differed."""
    return [
        path
        for folder, _folders, names in os.walk(root)
        for path in [folder, *(os.path.join(folder, name) for name in names)]
        if make_plain(path)
    ]


def take_place(path: str) -> None:
    """Put the built tree where it is to be. What was there goes only when it is."""
    remove(old_path(path))
    if os.path.lexists(path):
        os.rename(path, old_path(path))
    os.rename(partial_path(path), path)
    remove(old_path(path))


def free_bytes(path: str) -> int:
    """Free bytes of the file system that a path is or will be on."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


def drop_cached(paths: t.Iterable[str]) -> None:
    """Bring files to the disk and let their pages go, since a GB10 counts the page cache as memory in use.

    Raises:
        OSError: a file cannot be opened.
    """
    os.sync()
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
