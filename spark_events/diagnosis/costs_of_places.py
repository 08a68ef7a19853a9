"""At which place in the user's code most of a cost arises that is added up over many stages."""

from __future__ import annotations

from collections import Counter

_MOST_PLACES = 100


class CostsOfPlaces:
    """Adds up what stages cost, by their places; of places beyond the first 100, only the whole is known.

    Attributes:
        all_ms: what all of them have cost, in ms.
    """

    def __init__(self) -> None:
        self.all_ms = 0
        self._by_place: Counter[str] = Counter()

    def add(self, place: str, cost_ms: int) -> None:
        """Add the cost of one more stage, in ms, at a place in the user's code, or of a stage's name."""
        self.all_ms += cost_ms
        if place in self._by_place or len(self._by_place) < _MOST_PLACES:
            self._by_place[place] += cost_ms

    @property
    def most(self) -> tuple[str, int]:
        """The place of more than half of it, and what that has cost, in ms; none, and 0, if there is none."""
        place, cost_ms = max(self._by_place.items(), key=lambda each: each[1], default=("", 0))
        return (place, cost_ms) if 2 * cost_ms > self.all_ms else ("", 0)
