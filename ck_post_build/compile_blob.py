"""Compiles one blob with ``ck_jit_compile.sh``, the way the runtime starts it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ck_post_build import flags as flag_text
from ck_post_build.cache_dir import is_left_over, private_name
from ck_post_build.cache_entry import BadEntryError, verify_output
from ck_post_build.cache_key import SCRIPT
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob
from ck_post_build.runtime_env import private_dir, scratch_dir, temp_dir

# Of so many blobs, precompiling headers first takes less time than it saves.
MANY = 8

_WORK_PREFIX = "work."
_LONGEST_LINE = 400


@dataclass(frozen=True)
class Compiled:
    """The outcome of a compile.

    Attributes:
        data: the verified shared object; None when it failed.
        problem: why it failed; "" otherwise.
        log: what the compiler printed.
        seconds: how long it took.
    """

    data: bytes | None
    problem: str
    log: bytes
    seconds: float


@dataclass
class Compiler:
    """Compiles blobs of one JIT root. Safe to use from several threads.

    Attributes:
        root: the directory with the script, sources and headers, absolute.
        hipcc: the compiler to run.
        timeout: seconds that one compile may take.
        key: the compiler's, as in names of entries.
        many: whether so much is to be compiled that it pays to precompile headers first, and not beside.
    """

    root: Path
    hipcc: str
    timeout: float
    key: str
    many: bool
    _running: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def compile(self, blob: RootBlob, arch: str) -> Compiled:
        """Compile `blob` for `arch` and verify the output; a failure is told in the result."""
        started = time.monotonic()
        log = b""
        try:
            with _work_dir() as work:
                output = work / "blob.so"
                log = self._run_script(blob, arch, output)
                data = output.read_bytes() if output.is_file() else None
            if data is None:
                raise CkPostBuildError(f"{SCRIPT} left no output")
            verify_output(data, blob.symbols, arch)
        except BadEntryError as error:
            return Compiled(None, f"the compiled file {error}", log, time.monotonic() - started)
        except _FailedError as error:
            return Compiled(None, _with_first_error(str(error), error.log), error.log, time.monotonic() - started)
        except (CkPostBuildError, OSError) as error:
            return Compiled(None, str(error), log, time.monotonic() - started)
        return Compiled(data, "", log, time.monotonic() - started)

    def stop(self) -> None:
        """End all compiles that run; those that start later fail at once."""
        with self._lock:
            self._stopped = True
            groups = list(self._running)
        for group in groups:
            _kill_group(group)

    @property
    def stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._stopped

    def _run_script(self, blob: RootBlob, arch: str, output: Path) -> bytes:
        flags = f"{flag_text.join(blob.flags)} --offload-arch={arch}"
        environment = {**os.environ, "CK_JIT_ARCH": arch, "CK_JIT_LIFELINE": "1"}
        if output.is_relative_to(scratch_dir()):  # where nobody else can write
            environment["CK_JIT_PRECOMPILED"] = f"{scratch_dir()}/precompiled/{self.key}"
        if self.many:
            environment.setdefault("CK_JIT_PRECOMPILE", "first")
        command = [str(self.root / SCRIPT), "--blob-source", blob.source, "--blob-flags", flags]
        command += ["--output", str(output), "--hipcc", self.hipcc, "--root", str(self.root)]
        with self._lock:
            if self._stopped:
                raise _FailedError("stopped", b"")
            process = subprocess.Popen(
                command,
                # The script ends with its stdin: nobody is left to want the blob then.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                env=environment,
                start_new_session=True,
            )
            self._running.add(process.pid)
        try:
            return self._collect(process)
        finally:
            with self._lock:
                self._running.discard(process.pid)

    def _collect(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None and process.stdin is not None
        log: list[bytes] = []
        stdout = process.stdout
        reader = threading.Thread(target=lambda: log.extend(iter(lambda: stdout.read(65536), b"")), daemon=True)
        reader.start()
        reason = ""
        try:
            process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            reason = f"stopped after {self.timeout:g} s, the limit in CK_JIT_COMPILE_TIMEOUT"
        except BaseException:
            _kill_group(process.pid)
            process.wait()
            raise
        if reason:
            _kill_group(process.pid)
            process.wait()
        reader.join(1)  # what it left running in the background may keep the pipe open
        process.stdin.close()
        if not reader.is_alive():
            stdout.close()
        if not reason and process.returncode != 0:
            reason = f"exit status {process.returncode}"
            if process.returncode < 0:
                reason = f"killed by signal {-process.returncode}, {signal.strsignal(-process.returncode)}"
        text = b"".join(log)
        if reason:
            raise _FailedError(f"{SCRIPT} failed ({reason})", text)
        return text


class _FailedError(Exception):
    """The script failed; `log` is what it printed."""

    def __init__(self, message: str, log: bytes) -> None:
        super().__init__(message)
        self.log = log


def _with_first_error(what: str, log: bytes) -> str:
    lines = [line for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    first = next((line for line in lines if "error:" in line.lower()), lines[0] if lines else "")
    return f"{what}: {first[:_LONGEST_LINE]}" if first else what


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


@contextlib.contextmanager
def _work_dir() -> Iterator[Path]:
    """Make a directory for one compile, and remove it afterwards, with what killed processes left beside it."""
    try:
        scratch = private_dir(scratch_dir(), create=True)
        for item in scratch.iterdir():
            if is_left_over(item.name, _WORK_PREFIX):
                shutil.rmtree(item, ignore_errors=True)
        work = scratch / private_name(_WORK_PREFIX)
        work.mkdir(mode=0o700)
    except (CkPostBuildError, OSError):
        work = Path(tempfile.mkdtemp(prefix=".ck-jit-", dir=temp_dir()))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
