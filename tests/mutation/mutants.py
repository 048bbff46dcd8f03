"""Mutants of a real dispatcher and its blobs: each is the text of CK's generator with one thing changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_ALIAS = re.compile(r"using (\w+) = ([^;=]+);")
_SITE = re.compile(r"(?:return|r =)\s+(?P<call>(?P<name>fmha_\w+_)<(?P<arguments>[^;]*)>\(s, a\));")
_KERNEL_CALL = re.compile(r"fmha_\w+_<[^;{}]*?>\(s_, a\);")


@dataclass
class Source:
    """What CK's generator wrote: the API file's text, and each blob's by name."""

    api: str
    blobs: dict[str, str] = field(default_factory=dict)


@dataclass
class Mutant:
    """A changed source: what kind of change, what in particular, and which blobs have another text than before."""

    kind: str
    what: str
    source: Source
    changed: list[str] = field(default_factory=list)


Make = Callable[[Source, random.Random], Mutant | None]
KINDS: dict[str, Make] = {}


def _kind(name: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        KINDS[name] = make
        return make

    return register


def mutants(source: Source, seed: int, each: int) -> Iterator[Mutant]:
    """Yield up to `each` mutants of every kind, always the same for a seed; kinds that do not fit the source give none."""
    for name, make in KINDS.items():
        dice = random.Random(f"{seed} {name}")
        seen: set[tuple[str, str]] = set()
        for _ in range(each):
            mutant = make(source, dice)
            if mutant is None or mutant.source == source:  # nothing there to change
                continue
            if (mutant.kind, mutant.what) not in seen:
                seen.add((mutant.kind, mutant.what))
                yield mutant


def _api(kind: str, source: Source, start: int, end: int, text: str) -> Mutant:
    line = source.api.count("\n", 0, start) + 1
    before, after = " ".join(source.api[start:end].split()), " ".join(text.split())
    api = source.api[:start] + text + source.api[end:]
    return Mutant(kind, f"line {line}: {before[:50]} → {after[:70]}", Source(api, source.blobs))


def _pick(pattern: re.Pattern[str], text: str, dice: random.Random) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return dice.choice(found) if found else None


def _on_site(kind: str, change: Callable[[re.Match[str]], str]) -> None:
    """Register a kind that replaces the statement of a site."""

    @_kind(kind)
    def make(source: Source, dice: random.Random) -> Mutant | None:
        site = _pick(_SITE, source.api, dice)
        return None if site is None else _api(kind, source, site.start(), site.end(), change(site))


def _on_alias(kind: str, change: Callable[[str, random.Random], str | None]) -> None:
    """Register a kind that replaces what an alias in a function stands for."""

    @_kind(kind)
    def make(source: Source, dice: random.Random) -> Mutant | None:
        aliases = [m for m in _ALIAS.finditer(source.api) if "traits_<" in m[2]]
        alias = dice.choice(aliases) if aliases else None
        text = change(alias[2], dice) if alias else None
        return None if alias is None or text is None else _api(kind, source, *alias.span(2), text)


def _swap_arguments(text: str, dice: random.Random) -> str | None:
    head, _, rest = text.partition("<")
    arguments = [argument.strip() for argument in rest.rpartition(">")[0].split(",")]
    pairs = [(i, j) for i in range(len(arguments)) for j in range(i) if arguments[i] != arguments[j]]
    if not pairs:
        return None
    i, j = dice.choice(pairs)
    arguments[i], arguments[j] = arguments[j], arguments[i]
    return f"{head}<{', '.join(arguments)}>"


def _other_number(text: str, dice: random.Random) -> str | None:
    number = _pick(re.compile(r"\b\d+\b"), text, dice)
    return None if number is None else text[: number.start()] + str(int(number[0]) * 2 + 1) + text[number.end() :]


def _other_type(text: str, dice: random.Random) -> str | None:
    names = {"Fp16": "Bf16", "Bf16": "Fp16"}
    kind = _pick(re.compile(r"(?<=Fmha...)(Fp16|Bf16)"), text, dice)
    return None if kind is None else text[: kind.start()] + names[kind[0]] + text[kind.end() :]


def _other_truth(text: str, dice: random.Random) -> str | None:
    truth = _pick(re.compile(r"\b(true|false)\b"), text, dice)
    if truth is None:
        return None
    return text[: truth.start()] + ("false" if truth[0] == "true" else "true") + text[truth.end() :]


_on_alias("alias: unknown template", lambda text, dice: "no_such_" + text)
_on_alias("alias: two arguments swapped", _swap_arguments)
_on_alias("alias: another number", _other_number)
_on_alias("alias: another data type", _other_type)
_on_alias("alias: another truth value", _other_truth)
_on_alias("alias: an argument too few", lambda text, dice: re.sub(r",[^,]*>$", ">", text))

_on_site("site: unknown function", lambda m: m[0].replace(m["name"], "fmha_no_such_", 1))
_on_site("site: a kernel without a blob", lambda m: m[0].replace(m["arguments"].split(",")[0], "int", 1))
_on_site("site: another architecture", lambda m: re.sub(r"ck_tile::gfx\w+_t", "ck_tile::gfx12_t", m[0]))
_on_site("site: called twice", lambda m: f"{m['call']}; {m[0]}")
_on_site("site: gone", lambda m: "return -2;")
_on_site("site: in #if 0", lambda m: f"\n#if 0\n{m[0]}\n#endif\nreturn -2;")
_on_site("site: in a comment", lambda m: f"/* {m[0]} */ return -2;")
_on_site("site: in a string", lambda m: f'if(t.data_type == "{m["call"]}") return -2; {m[0]}')
_on_site("site: in a lambda", lambda m: f"return [&] {{ return {m['call']}; }}();")
_on_site("site: in a loop", lambda m: f"for(int n = 0; n < 2; ++n) {m['call']}; return -2;")
_on_site("site: in ?:", lambda m: f"return t.hdim_q > 0 ? {m['call']} : -2.f;")
_on_site("site: in parentheses", lambda m: m[0].replace(m["call"], f"({m['call']})"))
_on_site("site: through a pointer", lambda m: f"auto* f = &{m['name']}<{m['arguments']}>; return f(s, a);")
_on_site("site: comments inside", lambda m: m[0].replace("<", "/**/</**/", 1).replace("(s, a)", "/*(*/ (s, /*,*/ a)"))
_on_site("site: in a nested block", lambda m: f"{{ {{ {m[0]} }} }}")
_on_site("site: behind a switch", lambda m: f"switch(t.hdim_q) {{ case 3: return -2; default: {m[0]} }}")
_on_site("site: a shadowing alias", lambda m: f"{{ using unrelated = int; {m[0]} }}")


def _out_of_a_macro(site: re.Match[str]) -> str:
    through = f"CALL_OF_MINE({site['call'].removesuffix('(s, a)')})"
    return f"\n#define CALL_OF_MINE(...) __VA_ARGS__(s, a)\n{site[0].replace(site['call'], through)}\n#undef CALL_OF_MINE\n"


_on_site("site: out of a macro", _out_of_a_macro)


@_kind("aliases of two sites swapped")
def _two_aliases(source: Source, dice: random.Random) -> Mutant | None:
    aliases = [m for m in _ALIAS.finditer(source.api) if "traits_<" in m[2]]
    if len(aliases) < 2:
        return None
    number = dice.randrange(len(aliases) - 1)
    one = aliases[number]
    two = next((m for m in aliases[number + 1 :] if m[1] == one[1] and m[2] != one[2]), None)
    if two is None:
        return None
    middle = source.api[one.end(2) : two.start(2)]
    return _api("aliases of two sites swapped", source, one.start(2), two.end(2), two[2] + middle + one[2])


@_kind("else dropped")
def _no_else(source: Source, dice: random.Random) -> Mutant | None:
    found = _pick(re.compile(r"\belse(?=\s+if)"), source.api, dice)
    return None if found is None else _api("else dropped", source, found.start(), found.end(), "")


@_kind("condition negated")
def _negated(source: Source, dice: random.Random) -> Mutant | None:
    found = _pick(re.compile(r"== (true|false)\b"), source.api, dice)
    return None if found is None else _api("condition negated", source, found.start(), found.end(), "!= " + found[1])


@_kind("brace gone")
def _no_brace(source: Source, dice: random.Random) -> Mutant | None:
    found = _pick(re.compile(r"[{}]"), source.api, dice)
    return None if found is None else _api("brace gone", source, found.start(), found.end(), "")


@_kind("API file cut short")
def _cut_short(source: Source, dice: random.Random) -> Mutant | None:
    place = dice.randrange(len(source.api) // 2, len(source.api) - 5)
    return _api("API file cut short", source, place, len(source.api), "")


@_kind("wrapper: kernels swapped")
def _wrapper_swapped(source: Source, dice: random.Random) -> Mutant | None:
    calls = list(_KERNEL_CALL.finditer(source.api))
    if len(calls) < 2:
        return None
    one, two = calls[:2]
    middle = source.api[one.end() : two.start()]
    return _api("wrapper: kernels swapped", source, one.start(), two.end(), two[0] + middle + one[0])


@_kind("wrapper: a kernel left out")
def _wrapper_without(source: Source, dice: random.Random) -> Mutant | None:
    call = _pick(_KERNEL_CALL, source.api, dice)
    return None if call is None else _api("wrapper: a kernel left out", source, call.start(), call.end(), "")


@_kind("wrapper: a kernel called twice")
def _wrapper_twice(source: Source, dice: random.Random) -> Mutant | None:
    call = _pick(_KERNEL_CALL, source.api, dice)
    return (
        None if call is None else _api("wrapper: a kernel called twice", source, call.start(), call.end(), call[0] * 2)
    )


def _on_blob(kind: str, change: Callable[[str, random.Random], str | None]) -> None:
    """Register a kind that changes one blob's text."""

    @_kind(kind)
    def make(source: Source, dice: random.Random) -> Mutant | None:
        name = dice.choice(sorted(source.blobs))
        text = change(source.blobs[name], dice)
        if text is None or text == source.blobs[name]:
            return None
        return Mutant(kind, name, Source(source.api, source.blobs | {name: text}), [name])


def _trait_of(change: Callable[[str, random.Random], str | None]) -> Callable[[str, random.Random], str | None]:
    def apply(text: str, dice: random.Random) -> str | None:
        traits = [m for m in _ALIAS.finditer(text) if "traits_<" in m[2]]
        new = change(traits[-1][2], dice) if traits else None
        return None if new is None else text[: traits[-1].start(2)] + new + text[traits[-1].end(2) :]

    return apply


_on_blob("blob: cut short", lambda text, dice: text[: dice.randrange(len(text) // 2, len(text) - 20)])
_on_blob("blob: a word that is none", lambda text, dice: text.replace("template<>", "template<> nonsense", 1))
_on_blob("blob: two arguments swapped", _trait_of(_swap_arguments))
_on_blob("blob: another number", _trait_of(_other_number))
_on_blob("blob: another truth value", _trait_of(_other_truth))
_on_blob("blob: comments and blanks", lambda text, dice: "/* template<> */\n" + text.replace(", ", " /*,*/ , "))
_on_blob("blob: emptied", lambda text, dice: "// nothing\n")


@_kind("blob: gone")
def _gone(source: Source, dice: random.Random) -> Mutant | None:
    name = dice.choice(sorted(source.blobs))
    return Mutant("blob: gone", name, Source(source.api, {n: t for n, t in source.blobs.items() if n != name}))


@_kind("blob: twice")
def _twice(source: Source, dice: random.Random) -> Mutant | None:
    name = dice.choice(sorted(source.blobs))
    return Mutant("blob: twice", name, Source(source.api, source.blobs | {f"copy_of_{name}": source.blobs[name]}))


@_kind("blobs: contents swapped")
def _contents_swapped(source: Source, dice: random.Random) -> Mutant | None:
    if len(source.blobs) < 2:
        return None
    one, two = dice.sample(sorted(source.blobs), 2)
    blobs = source.blobs | {one: source.blobs[two], two: source.blobs[one]}
    return Mutant("blobs: contents swapped", f"{one}, {two}", Source(source.api, blobs), [one, two])
