"""A text for clang in which long ``else if`` chains are statements one after another.

Each link of a chain is a scope inside the one before, and clang looks every name up through all of them: a chain of a thousand
links takes time with the square of its length. Without the ``else`` each name costs the same, half of the time of a whole
parse is saved, and offsets and the meaning of every expression stay what they were as long as

- no link of the chain declares a name in its condition, which the later links would see,
- the chain stands in a block, not behind a ``for`` or another ``if`` without braces,
- no link is an ``if constexpr``, which may discard the rest.

Who walks the parse checks that for each ``else`` that was taken out, and falls back to the true text otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ELSE_IF = re.compile(r"(\}\s*)else(?=\s+if\b)")
_TO_IF = re.compile(r"\s+")


@dataclass(frozen=True)
class FlatText:
    """A text of the same length without the ``else`` between a closing brace and an ``if``.

    Attributes:
        text: one character a byte.
        continued: from the offset behind such a brace to that of the ``if``.
    """

    text: str
    continued: dict[int, int]


def flatten(text: str) -> FlatText:
    """Return `text` with blanks for each ``else`` that can be left out, in comments and literals as well."""
    continued: dict[int, int] = {}
    for match in _ELSE_IF.finditer(text):
        blank = _TO_IF.match(text, match.end())
        assert blank is not None
        continued[match.start() + 1] = blank.end()
    return FlatText(_ELSE_IF.sub(r"\1    ", text), continued)
