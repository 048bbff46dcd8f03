"""GPU architectures as ``--offload-arch`` and ``gcnArchName`` name them: ``gfx90a``, ``gfx90a:sramecc+:xnack-``."""

from __future__ import annotations

from collections.abc import Sequence

from ck_post_build.errors import CkPostBuildError


def processor(arch: str) -> str:
    """Return the architecture without its features."""
    return arch.partition(":")[0]


def _features(arch: str) -> dict[str, str]:
    return {part[:-1]: part[-1] for part in arch.split(":")[1:] if len(part) > 1}


def arch_runs_on(code: str, device: str) -> bool:
    """Tell whether code for `code` runs on `device`: the same processor, and no feature the other way round."""
    have = _features(device)
    return processor(code) == processor(device) and all(
        have.get(name, sign) == sign for name, sign in _features(code).items()
    )


def choose_arch(device: str, built_for: Sequence[str]) -> str:
    """Return what the runtime compiles for on `device`: the most specific of `built_for`; all will do if that is empty.

    Raises:
        CkPostBuildError: the library was not built for this device.
    """
    if not built_for:
        return processor(device)
    fitting = [arch for arch in built_for if arch_runs_on(arch, device)]
    if not fitting:
        raise CkPostBuildError(
            f"the library was built for {', '.join(built_for)}, not for {device}. Choose another --arch"
        )
    return max(fitting, key=len)
