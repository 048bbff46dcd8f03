"""The JIT root as Python sees it: the manifests that ``install`` put beside the blob sources."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ck_post_build.errors import CkPostBuildError

JIT_ROOT = "ck_jit"


class RootBlob(msgspec.Struct, frozen=True):
    """A blob of an installed library: what the runtime's manifest has on it, and its kernel symbols."""

    name: str
    source: str
    flags: list[str]
    source_hash: str
    headers_hash: str
    symbols: list[str]


class RootManifest(msgspec.Struct, frozen=True):
    """The blobs of one installed library, in order of their names, and the architectures it was built for.

    `parameters` has, for each template in the kernels' arguments, the names of its parameters, and `enums`, for each
    enumeration among them, its values by their numbers. No site reaches the `unreferenced_blobs`.
    """

    library: str
    arches: list[str]
    blobs: list[RootBlob]
    parameters: dict[str, list[str]] = {}
    enums: dict[str, dict[str, str]] = {}
    unreferenced_blobs: list[str] = []


def manifest_name(library: str) -> str:
    """Return the name, under the JIT root, of the manifest that ``CK_JIT_MANIFEST`` can name for `library`."""
    return f"{library}.manifest"


def read_root_manifest(root: Path, library: str) -> RootManifest:
    """Read the manifest of `library` in the JIT root.

    Raises:
        CkPostBuildError: there is none, or it is damaged.
    """
    path = root / f"{manifest_name(library)}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=RootManifest)
    except OSError as error:
        raise CkPostBuildError(
            f"no manifest of {library}: {error.strerror}. Install the library with ck-post-build install", file=path
        ) from error
    except msgspec.MsgspecError as error:
        raise CkPostBuildError(f"damaged manifest: {error}. Install the library again", file=path) from error


def root_directory(root: Path) -> Path:
    """Return the JIT root: `root` itself, or the one in the prefix `root`; absolute."""
    root = root.absolute()
    return root / JIT_ROOT if (root / JIT_ROOT).is_dir() else root


def find_root_manifests(root: Path) -> list[RootManifest]:
    """Return the manifests of all libraries of a JIT root (or of the prefix that holds it).

    Raises:
        CkPostBuildError: there is none.
    """
    place = root_directory(root)
    names = sorted(path.name.removesuffix(".manifest.json") for path in place.glob("*.manifest.json"))
    if not names:
        raise CkPostBuildError(
            "no JIT root: it holds no *.manifest.json. Give the prefix of ck-post-build install", file=root
        )
    return [read_root_manifest(place, name) for name in names]
