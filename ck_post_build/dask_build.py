"""Fills the cache with the workers of a Dask scheduler.

A task is (blob, hash of script and headers, architecture) → bytes. Script and headers travel once to each worker, also to
those that join later; a blob's source travels with its task. Workers share nothing with this machine and write no cache:
what comes back is verified and published here. Tasks of a lost worker go to others.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ck_post_build import runtime_env
from ck_post_build.blob_selection import Target
from ck_post_build.cache_dir import is_good, remove_left_overs
from ck_post_build.cache_entry import BadEntryError, verify_output
from ck_post_build.cache_key import compiler_id, compiler_key, read_script
from ck_post_build.compile_blob import Compiled, Compiler
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob
from ck_post_build.prebuild import Outcome, State, keep
from ck_post_build.source_archive import SourceArchive, pack_sources, unpack_sources

try:
    import distributed
except ImportError as error:
    raise CkPostBuildError(
        f"--scheduler needs Dask ({error}): pip install 'ck-post-build[distributed]' here and on the workers"
    ) from error

_dask: Any = distributed  # most of it has no types

# Enough that no worker waits for this machine, and few enough that their results need little memory.
_TASKS_PER_THREAD = 3


class _Roots(distributed.WorkerPlugin):
    """Gives each worker a copy of script and headers, and finds its compiler."""

    def __init__(self, name: str, archive: SourceArchive, timeout: float) -> None:
        self.name = name
        self._archive = archive
        self._timeout = timeout

    def setup(self, worker: Any) -> None:
        """Unpack the archive on the worker."""
        self.root = Path(worker.local_directory).absolute() / self.name
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        unpack_sources(self._archive, self.root)
        self.compiler = Compiler(self.root, "", self._timeout, "", many=True)

    def teardown(self, worker: Any) -> None:
        """End what still runs, and remove the copy."""
        self.compiler.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def ready(self) -> Compiler:
        """Return the compiler, which is found once a worker. Raises CkPostBuildError where there is none."""
        if not self.compiler.key:
            by = compiler_id(runtime_env.find_hipcc())
            self.compiler.hipcc = by.hipcc
            self.compiler.key = compiler_key(by.identity, read_script(self.root))
        return self.compiler


def _plugin(worker: Any, name: str) -> _Roots:
    plugin = worker.plugins[name]
    assert isinstance(plugin, _Roots)
    return plugin


def _compiler_key(plugin: str, dask_worker: Any) -> str:
    """Run on a worker: return the key of its compiler, or a message after a blank."""
    try:
        return _plugin(dask_worker, plugin).ready().key
    except CkPostBuildError as error:
        return f" {error}"


def _compile(plugin: str, blob: RootBlob, source: bytes, arch: str) -> tuple[str, Compiled]:
    """Run on a worker: compile a blob, and return the key of the compiler with the result."""
    try:
        compiler = _plugin(_dask.get_worker(), plugin).ready()
    except CkPostBuildError as error:
        return "", Compiled(None, str(error), b"", 0.0)
    name = hashlib.sha256(blob.name.encode("utf-8", "surrogateescape") + source).hexdigest()[:32]
    # Under its own name: compilers put it into the code. Two tasks of one blob, for two architectures, write the same.
    path = compiler.root / "sources" / name / Path(blob.source).name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source)
    return compiler.key, compiler.compile(msgspec.structs.replace(blob, source=str(path)), arch)


def prebuild_on_workers(
    targets: Sequence[Target], cache_dir: str, root: Path, address: str, note: Callable[[str], None]
) -> Generator[Outcome, None, None]:
    """Compile the `targets` that the cache lacks on the workers of the scheduler at `address`, and yield what became of each.

    `note` is called with what the user should know.

    Raises:
        CkPostBuildError: there is no scheduler, it has no workers, or their compilers differ.
    """
    cache = Path(cache_dir)
    remove_left_overs(cache)
    archive = pack_sources(root)
    try:
        # First by hand: a client that finds nobody says so again, with a traceback, when it is deleted.
        asyncio.run(_greet(address))
        client = _dask.Client(address, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise CkPostBuildError(
            f"cannot reach a Dask scheduler at {address}: {error}. Start one with: dask scheduler --host HOST"
        ) from error
    # Its own for each run, so that the end of one does not take it from another.
    plugin = f"ck-post-build-{archive.digest[:16]}-{uuid.uuid4().hex}"
    with client:
        try:
            key = _common_compiler(_ask_workers(client, _Roots(plugin, archive, runtime_env.compile_timeout())))
            _compare_with_own(key, root, note)
            missing: list[Target] = []
            for target in targets:
                if is_good(cache / target.entry(key).file, target.blob, target.arch):
                    yield Outcome(target, State.PRESENT)
                else:
                    missing.append(target)
            yield from _compile_all(client, plugin, missing, cache, root, key)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                client.unregister_worker_plugin(plugin)


async def _greet(address: str) -> None:
    """Connect to `address`, within the time that Dask's configuration gives."""
    comm = await _dask.core.connect(address)
    await comm.close()


def _compare_with_own(key: str, root: Path, note: Callable[[str], None]) -> None:
    with suppress(CkPostBuildError):  # this machine need not have a compiler
        own = compiler_key(compiler_id(runtime_env.find_hipcc()).identity, read_script(root))
        if own != key:
            note(
                "the workers have another compiler than this machine: with a compiler of its own, it uses their entries only "
                "as read-only ones (CK_JIT_CACHE_PATH) or with CK_JIT_COMPILE=0"
            )


def _ask_workers(client: Any, plugin: _Roots) -> dict[str, str]:
    """Hand out the plugin, and return what ``_compiler_key`` says on each worker."""
    try:
        client.register_plugin(plugin)
        answers: dict[str, str] = client.run(_compiler_key, plugin.name)
    except Exception as error:  # what a worker could not do comes back as whatever it was there
        raise CkPostBuildError(
            f"the workers cannot be set up ({type(error).__name__}: {error}). They need the same ck-post-build and Python "
            "as this machine"
        ) from error
    return answers


def _common_compiler(keys: dict[str, str]) -> str:
    """Return the key of the workers' compiler, which has to be one and the same."""
    if not keys:
        raise CkPostBuildError("the scheduler has no workers: start some with: dask worker SCHEDULER_ADDRESS")
    for worker, key in sorted(keys.items()):
        if key.startswith(" "):
            raise CkPostBuildError(f"the worker {worker} cannot compile: {key.strip()}")
    if len({*keys.values()}) > 1:
        listed = ", ".join(f"{worker}: {key}" for worker, key in sorted(keys.items()))
        raise CkPostBuildError(
            "the workers have different compilers, and entries are kept by compiler. Take workers with the same ROCm in the "
            f"same place ({listed})"
        )
    return next(iter(keys.values()))


def _compile_all(
    client: Any, plugin: str, targets: Sequence[Target], cache: Path, root: Path, key: str
) -> Iterator[Outcome]:
    completed = _dask.as_completed(loop=client.loop)
    running: dict[Any, Target] = {}
    most = _TASKS_PER_THREAD * sum(client.nthreads().values())
    for target in targets:
        try:
            source = (root / target.blob.source).read_bytes()
        except OSError as error:
            yield Outcome(target, State.FAILED, problem=f"cannot read the source: {error.strerror}")
            continue
        future = client.submit(_compile, plugin, target.blob, source, target.arch, pure=False)
        running[future] = target
        completed.add(future)
        while len(running) >= most:
            yield _outcome(done := next(completed), running.pop(done), cache, key)
            most = max(most, _TASKS_PER_THREAD * sum(client.nthreads().values()))
    for done in completed:
        yield _outcome(done, running.pop(done), cache, key)


def _outcome(future: Any, target: Target, cache: Path, key: str) -> Outcome:
    """Return what became of a finished task, after verifying and publishing what it made."""
    try:
        made_by, compiled = future.result()
        if compiled.data is not None:
            if made_by != key:
                raise CkPostBuildError(f"a worker that joined has another compiler ({made_by} instead of {key})")
            verify_output(compiled.data, target.blob.symbols, target.arch)
    except BadEntryError as error:
        return Outcome(target, State.FAILED, problem=f"what the worker sent {error}")
    except Exception as error:  # whatever Dask says of a task that it gave up, such as KilledWorker
        return Outcome(target, State.FAILED, problem=f"{type(error).__name__}: {error}")
    finally:
        future.release()
    return keep(cache, target, target.entry(key), compiled)
