"""The manifest: what its tables say, and what its hash depends on."""

from __future__ import annotations

import re

from ck_post_build.manifest import FlagSet, Manifest, manifest_header

from .parsing import IndexMaker

FLAGS = FlagSet(("-O3", "-I@CK_JIT_ROOT@/a b"), "c0ffee")


def manifest(*blobs: tuple[str, str], flags: FlagSet = FLAGS) -> Manifest:
    maker = IndexMaker()
    for name, *arguments in blobs:
        maker.add(name, *arguments, "void")
    return Manifest(maker.done(), {name: flags for name, *_ in blobs}, ["gfx942"])


def test_symbols_are_put_together_from_prefix_middle_and_suffix() -> None:
    made = manifest(("a.cpp", "traits<64>"), ("b.cpp", "traits<128>"))
    text = manifest_header(made.tables())
    prefixes = re.findall(r'\{"(\w+)", "(\w+)"\}', text)
    suffixes = re.findall(r'^    "(\w+)", // \d+$', text, re.MULTILINE)
    rows = [
        [(int(k), int(s)) for k, s in re.findall(r"\{(\d+), (\d+)\}", row)]
        for row in re.findall(r"^    (\{\d+, \d+\}.*)$", text, re.MULTILINE)
    ]
    instances = re.findall(r'^    \{(\d+), (\d+), (\d+), "(\w*)"\},$', text, re.MULTILINE)
    found = [
        [prefixes[kernel][1] + middle + suffixes[suffix] for kernel, suffix in rows[int(blob)]]
        for blob, _, _, middle in instances
    ]
    assert found == [[kernel.symbol for kernel in instance.kernels] for instance in made.index.instances]
    assert [(int(first), int(count)) for _, first, count, _ in instances] == [(0, 2), (2, 2)]


def test_numbers_of_slots_and_kernels() -> None:
    made = manifest(("a.cpp", "traits<64>"), ("b.cpp", "traits<128>"))
    assert [made.slots[id(instance)] for instance in made.index.instances] == [0, 1]
    assert made.kernel_numbers == {"fmha_fwd_": 0, "fmha_fwd_get_name_": 1}


def test_records_are_what_the_script_reads() -> None:
    assert manifest(("a b.cpp", "traits<1>")).records() == b"a b.cpp\tblobs/a b.cpp\t-O3 -I@CK_JIT_ROOT@/a\\ b\0"


def test_layout_hash_covers_slots_and_not_flags() -> None:
    first = manifest(("a.cpp", "traits<64>"), ("b.cpp", "traits<128>"))
    flags_changed = manifest(("a.cpp", "traits<64>"), ("b.cpp", "traits<128>"), flags=FlagSet(("-O2",), "c0ffee"))
    assert re.fullmatch("[0-9a-f]{16}", first.layout_hash)
    assert first.layout_hash == flags_changed.layout_hash
    assert manifest_header(first.tables()) != manifest_header(flags_changed.tables())
    assert first.layout_hash != manifest(("a.cpp", "traits<128>"), ("b.cpp", "traits<64>")).layout_hash
    assert first.layout_hash != manifest(("a.cpp", "traits<64>"), ("c.cpp", "traits<128>")).layout_hash
