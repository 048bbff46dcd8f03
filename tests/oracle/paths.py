"""The way through a dispatcher's conditions to a statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# An atom's number and the truth that it needs.
Step = tuple[int, bool]


@dataclass(frozen=True)
class Link:
    """An `else if` and where its branch begins. What satisfies all its steps goes no further along the chain."""

    offset: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Path:
    """The way to a statement.

    Attributes:
        steps: what has to hold.
        chains: links that stand before it, as the first so many of a chain, for each chain that it is in.
    """

    steps: tuple[Step, ...] = ()
    chains: tuple[tuple[list[Link], int], ...] = ()

    def earlier(self) -> Iterator[Link]:
        """Yield the links before it."""
        for links, count in self.chains:
            yield from links[:count]

    def through(self, steps: Sequence[Step]) -> Path:
        """Return the path on which these have to hold too."""
        return Path((*self.steps, *steps), self.chains)

    def past(self, links: list[Link]) -> Path:
        """Return the path behind all `links`."""
        return Path(self.steps, (*self.chains, (links, len(links))))
