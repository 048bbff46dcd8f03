"""The fault matrix: each case does something bad, checks the result of the call, and then that the cache is whole."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from fault_lab import Lab, Skip, alive, kill, mounted_tmpfs, remount_read_only, wait_for


@dataclass
class Outcome:
    call: str
    cache: str


@dataclass
class Case:
    fault: str
    run: Callable[[Lab], Outcome]
    full: bool = False

    @property
    def id(self) -> str:
        return "".join(c if c.isalnum() else "_" for c in self.fault)


CASES: list[Case] = []


def case(fault: str, *, full: bool = False) -> Callable[[Callable[[Lab], Outcome]], Callable[[Lab], Outcome]]:
    def add(function: Callable[[Lab], Outcome]) -> Callable[[Lab], Outcome]:
        CASES.append(Case(fault, function, full))
        return function

    return add


def kills(lab: Lab, fault: str, entries: int) -> Outcome:
    process = lab.start("i:1", fault=fault)
    process.communicate(timeout=60)
    assert process.returncode == -9, "it was not killed where it should be"
    assert len(lab.entries()) == entries
    return Outcome("process dead; the next one gets 1001", lab.check_whole(1))


def works(lab: Lab, *calls: str, said: str = "", fault: str = "", **extra: str) -> str:
    """The call succeeds in spite of all."""
    calls = calls or ("i:1",)
    result = lab.run(*calls, fault=fault, **extra)
    assert result.values == {call: 1000 + int(call[2:]) for call in calls}, result
    assert said in result.stderr, result.stderr
    return "right" + (f", says '{said}'" if said else "")


def fails(lab: Lab, *said: str, fault: str = "", **extra: str) -> str:
    """The call returns -1 and both stderr and ck_jit_last_error() say why."""
    result = lab.run("i:1", fault=fault, **extra)
    assert result.values == {"i:1": -1}, result
    for text in ("toy_1.cpp", *said):
        assert text in result.error, result.error
        assert text in result.stderr, result.stderr
    return f"-1, says '{said[0]}'"


# --- processes that die ---


@case("SIGKILL before the compile starts")
def _(lab: Lab) -> Outcome:
    return kills(lab, "posix_spawn:kill", 0)


@case("SIGKILL after the compile has started")
def _(lab: Lab) -> Outcome:
    return kills(lab, "posix_spawn:after:compile.sh", 0)


@case("SIGKILL between compile and publish: new file not yet on disk")
def _(lab: Lab) -> Outcome:
    return kills(lab, "fsync:kill", 0)


@case("SIGKILL between compile and publish: before the rename")
def _(lab: Lab) -> Outcome:
    return kills(lab, "renameat:kill:toy_1.", 0)


@case("SIGKILL between publish and use: after the rename")
def _(lab: Lab) -> Outcome:
    return kills(lab, "renameat:after:toy_1.", 1)


@case("SIGKILL between publish and use: before dlopen")
def _(lab: Lab) -> Outcome:
    return kills(lab, "dlopen:kill:toy_1.", 1)


def random_kills(lab: Lab, count: int) -> Outcome:
    begin = time.monotonic()
    lab.entry(1)
    whole_run = time.monotonic() - begin
    moments = random.Random(count)
    died = 0
    for _ in range(count):
        shutil.rmtree(lab.cache, ignore_errors=True)
        process = lab.start("i:1", "i:2")
        time.sleep(moments.uniform(0, 1.5 * whole_run))
        died += process.poll() is None
        process.kill()
        process.communicate()
        lab.wait_for_orphans()  # they may be about to count a compile, and end with their caller
        lab.check_whole(1, 2)
    assert died > 0, "they were all done before they could be killed"
    return Outcome(f"{died} of {count} processes died early; each next one is right", "whole every time")


@case("SIGKILL at 5 random moments")
def _(lab: Lab) -> Outcome:
    return random_kills(lab, 5)


@case("SIGKILL at 50 random moments", full=True)
def _(lab: Lab) -> Outcome:
    return random_kills(lab, 50)


@case("SIGKILL during a long compile: the orphaned compiler")
def _(lab: Lab) -> Outcome:
    process = lab.start("i:1", FAKE_HIPCC_MODE="hang")
    wait_for(lambda: lab.compiles() == 1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    kill(process)
    wait_for(lambda: not any(alive(int(child)) for child in children))
    return Outcome("process dead, its compiler ends too", lab.check_whole(1))


@case("SIGKILL of the process that compiles while another waits")
def _(lab: Lab) -> Outcome:
    first = lab.start("i:1", FAKE_HIPCC_MODE="hang")
    wait_for(lambda: lab.compiles() == 1)
    second = lab.start("i:1")
    time.sleep(0.3)
    assert second.poll() is None, "it did not wait"
    kill(first)
    stdout, _ = second.communicate(timeout=60)
    assert "i:1 1001" in stdout
    assert lab.compiles() == 2
    return Outcome("the waiting one takes over and is right", lab.check_whole(1))


@case("exit() while a compile runs in the background")
def _(lab: Lab) -> Outcome:
    marker = lab.tmp / "started"
    process = lab.start("p:toy_1.cpp", f"f:{marker}", FAKE_HIPCC_MODE="hang")
    wait_for(lambda: lab.compiles() == 1)
    children = Path(f"/proc/{process.pid}/task")
    pids = [pid for task in children.iterdir() for pid in (task / "children").read_text().split()]
    assert pids
    marker.touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    wait_for(lambda: not any(alive(int(pid)) for pid in pids))
    return Outcome("exit status 0, its compiler ends too", lab.check_whole(1))


# --- no space, no permission ---


@case("cache on a full disk (tmpfs of 16 KB)")
def _(lab: Lab) -> Outcome:
    with mounted_tmpfs(lab.cache, "size=16k,mode=700"):
        call = works(lab, said="serve this process only")
        assert lab.entries() == []
        assert not list(lab.cache.glob(".tmp*"))
    return Outcome(call, lab.check_whole(1))


@case("scratch directory on a full disk (tmpfs of 4 KB)")
def _(lab: Lab) -> Outcome:
    with mounted_tmpfs(lab.tmp / "small", "size=4k,mode=700"):
        call = fails(lab, "build script failed", TMPDIR=str(lab.tmp / "small"))
        assert lab.entries() == []
    return Outcome(call, lab.check_whole(1))


def limited(lab: Lab, blocks: int) -> subprocess.CompletedProcess[str]:
    """A run in which no file may grow beyond so many KB."""
    command = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash"]
    command += [str(lab.built.driver), str(lab.built.library.path), "i:1"]
    return subprocess.run(command, env=lab.env(), capture_output=True, text=True, timeout=60)


@case("file-size limit below that of the entry")
def _(lab: Lab) -> Outcome:
    size = lab.entry().stat().st_size
    shutil.rmtree(lab.cache)
    # The compiler's output fits to the byte, the entry with its trailer does not.
    command = ["prlimit", f"--fsize={size - 64}", str(lab.built.driver), str(lab.built.library.path), "i:1"]
    result = subprocess.run(command, env=lab.env(), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, "SIGXFSZ must not kill the process"
    assert "i:1 1001" in result.stdout
    assert "serve this process only" in result.stderr
    assert lab.entries() == []
    return Outcome("right, says 'serve this process only'", lab.check_whole(1))


@case("file-size limit of 1 KB")
def _(lab: Lab) -> Outcome:
    result = limited(lab, 1)
    assert "i:1 -1" in result.stdout
    assert "build script failed" in result.stderr
    return Outcome("-1, says 'build script failed'", lab.check_whole(1))


@case("read-only cache with the entry in it")
def _(lab: Lab) -> Outcome:
    with mounted_tmpfs(lab.cache, "size=10m,mode=700"):
        lab.entry()
        remount_read_only(lab.cache)
        call = works(lab)
        assert lab.compiles() == 1
    return Outcome(call + ", nothing compiled", lab.check_whole(1))


@case("read-only cache without the entry")
def _(lab: Lab) -> Outcome:
    with mounted_tmpfs(lab.cache, "size=10m,mode=700"):
        remount_read_only(lab.cache)
        result = lab.run("i:1", "i:2")
        assert result.values == {"i:1": 1001, "i:2": 1002}
        assert result.stderr.count("serve this process only") == 1, "it says so once"
    return Outcome("right, says 'serve this process only' once", lab.check_whole(1))


@case("cache directory deleted while running")
def _(lab: Lab) -> Outcome:
    first, second = lab.tmp / "first", lab.tmp / "second"
    process = lab.start("i:1", f"e:{first}", f"f:{second}", "i:2")
    wait_for(first.exists)
    shutil.rmtree(lab.cache)
    second.touch()
    stdout, _ = process.communicate(timeout=60)
    assert "i:1 1001" in stdout
    assert "i:2 1002" in stdout
    assert len(lab.entries()) == 1
    return Outcome("right", lab.check_whole(1, 2))


@case("cache directory deleted during a compile")
def _(lab: Lab) -> Outcome:
    process = lab.start("i:1", FAKE_HIPCC_MODE="slow")
    wait_for(lambda: lab.compiles() == 1)
    shutil.rmtree(lab.cache)
    stdout, _ = process.communicate(timeout=60)
    assert "i:1 1001" in stdout
    return Outcome("right", lab.check_whole(1))


# --- what may lie under the final name ---


def replaced(lab: Lab, reason: str, entry: Path, again: int = 1) -> str:
    """The bad file is set aside, once, and a good one is in its place."""
    before = lab.compiles()
    result = lab.run("i:1")
    assert result.values == {"i:1": 1001}, result
    assert result.stderr.count("set aside") == again, result.stderr
    assert reason in result.stderr, result.stderr
    assert lab.compiles() == before + 1
    note = (lab.cache / "bad" / (entry.name + ".txt")).read_text()
    assert reason in note
    return f"right, set aside: '{reason}'"


def damaged(lab: Lab, damages: Iterator[bytes], expected: int) -> Outcome:
    entry = lab.entry()
    done = 0
    for damage in damages:
        entry.write_bytes(damage)
        replaced(lab, "", entry)
        done += 1
    assert done >= expected, done
    return Outcome(f"right, set aside and recompiled, {done} times", lab.check_whole(1))


@case("entry cut off at every 4 KB")
def _(lab: Lab) -> Outcome:
    data = lab.entry().read_bytes()
    return damaged(lab, (data[:size] for size in range(0, len(data), 4096)), 4)


@case("entry without its last byte, and with one more")
def _(lab: Lab) -> Outcome:
    data = lab.entry().read_bytes()
    return damaged(lab, iter([data[:-1], data + b"\0"]), 2)


def with_flips(data: bytes, start: int, size: int, count: int) -> Iterator[bytes]:
    for number in range(count):
        position = start + (size - 1) * number // max(count - 1, 1)
        flipped = bytearray(data)
        flipped[position] ^= 1 << number % 8
        yield bytes(flipped)


def flips_in(section: str, count: int, *, full: bool = False) -> None:
    @case(f"{count} bit flips in {section}", full=full)
    def _(lab: Lab) -> Outcome:
        entry = lab.entry()
        data = entry.read_bytes()
        if section == "the ELF header":
            start, size = 0, 64
        elif section == "the trailer":
            start, size = len(data) - 128, 128
        else:
            with entry.open("rb") as file:
                header = ELFFile(file).get_section_by_name(section)
                assert header
                start, size = header["sh_offset"], header["sh_size"]
        return damaged(lab, with_flips(data, start, size, count), count)


for _section in ("the ELF header", ".dynsym", ".text", "the trailer"):
    flips_in(_section, 3)
    flips_in(_section, 40, full=True)


@case("entry of another blob under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry(1)
    shutil.copy(lab.entry(2), entry)
    return Outcome(replaced(lab, "another key", entry), lab.check_whole(1, 2))


@case("plain .so, not made by the runtime, under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry(1)
    entry.write_bytes(entry.read_bytes()[:-128])
    return Outcome(replaced(lab, "no trailer", entry), lab.check_whole(1))


@case("text file under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    entry.write_text("not a library\n" * 100)
    return Outcome(replaced(lab, "no trailer", entry), lab.check_whole(1))


@case("empty file under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    entry.write_bytes(b"")
    return Outcome(replaced(lab, "too short", entry), lab.check_whole(1))


@case("directory under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    entry.unlink()
    (entry / "sub").mkdir(parents=True)
    return Outcome(replaced(lab, "no regular file", entry), lab.check_whole(1))


@case("fifo under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    entry.unlink()
    os.mkfifo(entry)
    return Outcome(replaced(lab, "no regular file", entry), lab.check_whole(1))


@case("socket under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    entry.unlink()
    with socket.socket(socket.AF_UNIX) as unix:
        here = Path.cwd()
        os.chdir(entry.parent)  # the address may only have 107 bytes
        try:
            unix.bind(entry.name)
        except OSError as error:
            raise Skip(f"cannot make a socket: {error}") from error
        finally:
            os.chdir(here)
    return Outcome(replaced(lab, "", entry), lab.check_whole(1))


@case("symbolic link to a good file under the final name")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    elsewhere = lab.tmp / "elsewhere.so"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)
    return Outcome(replaced(lab, "symbolic link", entry), lab.check_whole(1))


@case("entry that others may write")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    entry.chmod(0o666)
    return Outcome(replaced(lab, "other users", entry), lab.check_whole(1))


@case("entry that belongs to another user")
def _(lab: Lab) -> Outcome:
    entry = lab.entry()
    if os.geteuid() != 0:
        raise Skip("needs root, to give a file away")
    os.chown(entry, 54321, 54321)
    return Outcome(replaced(lab, "belongs to user 54321", entry), lab.check_whole(1))


@case("compiler makes a file for another arch")
def _(lab: Lab) -> Outcome:
    call = fails(lab, "it has device code for gfx942, not for gfx90a", FAKE_HIPCC_ARCH="gfx942")
    assert lab.entries() == []
    return Outcome(call, lab.check_whole(1))


@case("compiler makes a file for another processor")
def _(lab: Lab) -> Outcome:
    wrong = lab.tmp / "hipcc"
    wrong.write_text(f"""#!/usr/bin/env bash
        '{lab.env()["CK_JIT_HIPCC"]}' "$@"
        [[ $1 == --version ]] && exit
        while [[ $1 != -o ]]; do shift; done
        printf '\\xb7' | dd of="$2" bs=1 seek=18 conv=notrunc status=none""")
    wrong.chmod(0o755)
    call = fails(lab, "made for another processor (ELF machine 183)", CK_JIT_HIPCC=str(wrong))
    assert lab.entries() == []
    return Outcome(call, lab.check_whole(1))


@case("compiler makes a file without the expected function")
def _(lab: Lab) -> Outcome:
    source = lab.built.library.root_dir / "blobs/toy_1.cpp"
    text = source.read_text()
    source.write_text(text.replace("toy_twice_", "toy_thrice_"))
    try:
        call = fails(lab, "does not define the function _Z10toy_twice_ILi1EEii")
    finally:
        source.write_text(text)
    assert lab.entries() == []
    return Outcome(call, lab.check_whole(1))


# --- the compiler ---


@case("compiler missing")
def _(lab: Lab) -> Outcome:
    call = fails(lab, "no hipcc found (looked at /nowhere/hipcc)", CK_JIT_HIPCC="/nowhere/hipcc")
    return Outcome(call, lab.check_whole(1))


@case("compiler missing, but the entry is there")
def _(lab: Lab) -> Outcome:
    lab.entry()
    return Outcome(works(lab, CK_JIT_HIPCC="/nowhere/hipcc"), lab.check_whole(1))


@case("compile script missing")
def _(lab: Lab) -> Outcome:
    where = f"not found at {lab.tmp}/ck_jit_compile.sh"
    call = fails(lab, "ck_jit_compile.sh not found", where, "set CK_JIT_ROOT", CK_JIT_ROOT=str(lab.tmp))
    return Outcome(call, lab.check_whole(1))


@case("compiler fails")
def _(lab: Lab) -> Outcome:
    log = str(lab.cache / "log" / "toy_1.")
    call = fails(
        lab, "build script failed (exit code 3): some.h:3:5: error: no such kernel", log, FAKE_HIPCC_MODE="fail"
    )
    (file,) = (lab.cache / "log").iterdir()
    assert "all is well so far" in file.read_text()
    return Outcome(call, lab.check_whole(1))


@case("compiler says it succeeded and made nothing")
def _(lab: Lab) -> Outcome:
    return Outcome(fails(lab, "build script left no output", FAKE_HIPCC_MODE="empty"), lab.check_whole(1))


@case("compiler hangs")
def _(lab: Lab) -> Outcome:
    call = fails(
        lab, "stopped at the time limit, CK_JIT_COMPILE_TIMEOUT", FAKE_HIPCC_MODE="hang", CK_JIT_COMPILE_TIMEOUT="1"
    )
    return Outcome(call, lab.check_whole(1))


@case("compiler prints 100 MB")
def _(lab: Lab) -> Outcome:
    call = works(lab, FAKE_HIPCC_MODE="flood")
    (log,) = (lab.cache / "log").iterdir()
    assert log.stat().st_size < 1_100_000
    assert "more bytes were dropped" in log.read_text()[-100:]
    return Outcome(f"{call}, log of {log.stat().st_size} bytes", lab.check_whole(1))


# --- time ---


@case("the clock jumps a day at every reading")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, "i:1", "i:2", fault="clock"), lab.check_whole(1, 2))


@case("entry dated 1970, and in the future")
def _(lab: Lab) -> Outcome:
    for date in (0, time.time() + 1e6):
        os.utime(lab.entry(), (date, date))
        works(lab)
    assert lab.compiles() == 1
    return Outcome("right, nothing compiled", lab.check_whole(1))


# --- many processes ---


def crowd(lab: Lab, processes: int, threads: int) -> Outcome:
    running = [lab.start("--threads", str(threads), "i:1", "i:2", "t:3,4,1") for _ in range(processes)]
    for process in running:
        stdout, stderr = process.communicate(timeout=300)
        assert "i:1 1001\ni:2 1002\nt:3,4,1 4008\n" in stdout, stdout + stderr
        assert "failures=0 different=0" in stdout, stdout
    assert lab.compiles() == 4
    return Outcome(f"right in all {processes * threads} threads, 4 compiles", lab.check_whole(1, 2, 3, 4))


@case("8 processes x 4 threads on 4 cold blobs")
def _(lab: Lab) -> Outcome:
    return crowd(lab, 8, 4)


@case("64 processes x 8 threads on 4 cold blobs")
def _(lab: Lab) -> Outcome:
    return crowd(lab, 64, 8)


@case("8 processes want a blob that does not compile")
def _(lab: Lab) -> Outcome:
    marker = lab.tmp / "go"
    broken = {"FAKE_HIPCC_MODE": "slow", "FAKE_HIPCC_SECONDS": "2", "FAKE_HIPCC_CXX": "false"}
    running = [lab.start(f"f:{marker}", "i:1", **broken) for _ in range(8)]
    marker.touch()
    for process in running:
        stdout, _ = process.communicate(timeout=300)
        assert "i:1 -1" in stdout
        assert "build script failed" in stdout
    assert lab.compiles() == 1, "those who waited take over the failure"
    return Outcome("-1 in all, 1 compile", lab.check_whole(1))


# --- file systems that misbehave ---


@case("rename fails with EIO")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, fault="renameat:eio", said="serve this process only"), lab.check_whole(1))


@case("rename fails with ESTALE")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, fault="renameat:estale", said="serve this process only"), lab.check_whole(1))


@case("rename takes half a second, in 3 processes")
def _(lab: Lab) -> Outcome:
    running = [lab.start("i:1", fault="renameat:wait:toy_1.") for _ in range(3)]
    for process in running:
        assert "i:1 1001" in process.communicate(timeout=60)[0]
    assert lab.compiles() == 1
    return Outcome("right, 1 compile", lab.check_whole(1))


@case("fsync fails with EIO")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, fault="fsync:eio", said="serve this process only"), lab.check_whole(1))


@case("lookups do not see the new file (negative cache of a network file system)")
def _(lab: Lab) -> Outcome:
    result = works(lab, fault="openat:enoent:toy_1.")
    assert len(lab.entries()) == 1
    return Outcome(result + ", from an own copy", lab.check_whole(1))


@case("lookups do not see the file of the winner")
def _(lab: Lab) -> Outcome:
    winner = lab.start("i:1", FAKE_HIPCC_MODE="slow")
    wait_for(lambda: lab.compiles() == 1)
    loser = lab.start("i:1", fault="openat:enoent:toy_1.")
    assert "i:1 1001" in winner.communicate(timeout=60)[0]
    assert "i:1 1001" in loser.communicate(timeout=60)[0]
    return Outcome("both right, the loser from an own copy", lab.check_whole(1))


@case("lookups fail with EIO")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, fault="openat:eio:toy_1."), lab.check_whole(1))


@case("file locks fail (ENOLCK as on some network file systems)")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, fault="flock:eio"), lab.check_whole(1))


@case("new files cannot be made in the cache (EROFS)")
def _(lab: Lab) -> Outcome:
    return Outcome(works(lab, fault="create:erofs:.tmp.", said="serve this process only"), lab.check_whole(1))


# --- hostile directories ---


def refused(lab: Lab, said: str, path: Path, **extra: str) -> Outcome:
    call = works(lab, said=said, **extra)
    assert not list(path.iterdir()) if path.is_dir() else True
    return Outcome(call, "untouched")


@case("cache directory of another user")
def _(lab: Lab) -> Outcome:
    lab.cache.mkdir()
    if os.geteuid() != 0:
        raise Skip("needs root, to give a directory away")
    os.chown(lab.cache, 54321, 54321)
    return refused(lab, "belongs to user 54321", lab.cache)


@case("cache directory that others may write")
def _(lab: Lab) -> Outcome:
    lab.cache.mkdir()
    lab.cache.chmod(0o777)
    return refused(lab, "can be written by other users", lab.cache)


@case("cache directory below one that everybody may write")
def _(lab: Lab) -> Outcome:
    (lab.tmp / "open").mkdir()
    (lab.tmp / "open").chmod(0o777)
    cache = lab.tmp / "open" / "cache"
    return refused(lab, "can be written by everybody", cache, CK_JIT_CACHE_DIR=str(cache))


@case("cache directory is a symbolic link")
def _(lab: Lab) -> Outcome:
    (lab.tmp / "target").mkdir(mode=0o700)
    lab.cache.symlink_to(lab.tmp / "target")
    return refused(lab, "is a symbolic link", lab.tmp / "target")


@case("cache directory is a file")
def _(lab: Lab) -> Outcome:
    lab.cache.write_text("mine")
    call = works(lab, said="serve this process only")
    assert lab.cache.read_text() == "mine"
    return Outcome(call, "untouched")


@case("lock and scratch directory of another user")
def _(lab: Lab) -> Outcome:
    scratch = lab.tmp / "tmp" / f"ck-jit-{os.geteuid()}"
    scratch.mkdir(parents=True)
    if os.geteuid() != 0:
        raise Skip("needs root, to give a directory away")
    os.chown(scratch, 54321, 54321)
    call = works(lab)
    assert list(scratch.iterdir()) == []
    assert not list((lab.tmp / "tmp").glob(".ck-jit-*")), "the other scratch directory is removed"
    os.chown(scratch, 0, 0)
    return Outcome(call, lab.check_whole(1))


@case("read-only tier of another user")
def _(lab: Lab) -> Outcome:
    lab.entry()
    lab.cache.rename(lab.tmp / "tier")
    os.chown(lab.tmp / "tier", 54321, 54321) if os.geteuid() == 0 else (lab.tmp / "tier").chmod(0o777)
    call = works(lab, CK_JIT_CACHE_PATH=str(lab.tmp / "tier"))
    assert lab.compiles() == 2
    return Outcome(call + ", compiled again", lab.check_whole(1))
