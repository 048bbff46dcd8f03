"""The names of generated functions and files, in one place."""

from __future__ import annotations

import hashlib
import re

# Two entry points of the C ABI that do not follow the rule.
_ENTRY_POINTS = {
    "fmha_bwd_dq_dk_dv_dq_acc_splits_": "ck_jit_bwd_dq_acc_splits",
    "fmha_bwd_dq_dk_dv_needs_zero_dq_acc_": "ck_jit_bwd_needs_zero_dq_acc",
}

# Longest first: fmha_fwd_splitkv_ is not of direction fwd.
_DIRECTIONS = {
    "fwd_splitkv": "fwd_splitkv",
    "fwd_appendkv": "fwd_appendkv",
    "fwd_pagedkv": "pagedkv_prefill",
    "pagedkv_prefill": "pagedkv_prefill",
    "batch_prefill": "batch_prefill",
    "fwd": "fwd",
    "bwd": "bwd",
}


def entry_point(template: str) -> str:
    """Return the name of the function that stands for a kernel or wrapper template.

    ``fmha_fwd_splitkv_`` gives ``ck_jit_fwd_splitkv_call``.
    """
    return _ENTRY_POINTS.get(template) or f"ck_jit_{template.removeprefix('fmha_').rstrip('_')}_call"


def direction(template: str) -> str:
    """Return the direction that a kernel or wrapper template belongs to: ``fmha_fwd_splitkv_`` gives ``fwd_splitkv``."""
    stem = template.rpartition("::")[2].removeprefix("fmha_").rstrip("_")
    return next((name for prefix, name in _DIRECTIONS.items() if stem.startswith(prefix)), stem)


def includable(stem: str) -> str:
    """Return `stem`, or where an ``#include`` or a comment cannot name it, one that they can, which no other stem has."""
    plain = re.sub(r"[\"\\<>\x00-\x1f]", "_", stem)
    if plain == stem:
        return stem
    return f"{plain}_{hashlib.sha256(stem.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
