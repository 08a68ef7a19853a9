"""The rule about features of MLlib that are fitted again for each evaluation of a model.

Tuning (``CrossValidator``, ``TrainValidationSplit``) fits all that its estimator has for each fold and for
each set of parameters. If that is a whole ``Pipeline``, it fits the same features each time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import RECOMPUTATION

_PLACE = re.compile(r"\w+ at (\w+)\.scala:\d+", re.ASCII)
_EVALUATES = frozenset(
    f"{kind}Metrics" for kind in ("BinaryClassification", "Multiclass", "Ranking", "Regression")
)
"""The files of Spark whose stages compute how good a model is."""
_FITS = frozenset(["ChiSqSelector", "CountVectorizer", "IDF", "PCA", "Word2Vec"])
"""The files of Spark whose stages fit features, of which a pipeline hardly has one for each column."""
_LEAST_TIMES, _MOST_PLACES, _MOST_AHEAD = 4, 1_000, 2
"""How often features are fitted at least, in how many places, and how much more often at most than models are
evaluated: the model that is kept is fitted once more."""
_MOST_OF_ONE = 3
"""So many stages of one place a feature runs at most when it is fitted."""
_LEAST_ROWS = 100
"""A stage that reads so few rows, such as sums of partitions, says nothing of the data."""


class FittedAgain:
    """Counts the stages of MLlib's features, and of its evaluations."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._wall_ms: Counter[str] = Counter()
        # By place, how many rows its stages have read, and how often it was as many.
        self._rows: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def take(self, stage_name: str, rows: int, alone_ms: Callable[[], int]) -> Issue | None:
        """Called with each stage that has succeeded; returns what fitting features again has cost so far.

        Args:
            stage_name: Spark's, such as ``mapPartitions at Word2Vec.scala:450``.
            rows: that its tasks have read, from sources and from shuffles.
            alone_ms: returns for how long it ran with no other stage beside it.
        """
        match = _PLACE.fullmatch(stage_name)
        if match is None or (stage_name not in self._times and len(self._times) >= _MOST_PLACES):
            return None
        file = match[1]
        if file not in _FITS and file not in _EVALUATES:
            return None
        self._times[stage_name] += 1
        self._wall_ms[stage_name] += alone_ms()
        if file in _FITS:
            self._rows[stage_name][rows] += 1
        evaluated = max(map(self._rarest, _EVALUATES))
        if evaluated < _LEAST_TIMES:
            return None
        fits = {name: self._fits(name, evaluated) for name in sorted(_FITS)}
        fitted = {name: n for name, n in fits.items() if evaluated <= n <= evaluated + _MOST_AHEAD}
        if not fitted or not self._are_of_the_same_rows(fitted):
            return None
        whole_ms = sum(ms for place, ms in self._wall_ms.items() if _file(place) in fitted)
        times = min(fitted.values())
        names = ", ".join(fitted)
        return Issue(
            RECOMPUTATION,
            f"{RECOMPUTATION} fits",
            whole_ms * (times - 1) // times,
            None,
            f"features ({names}) are fitted {times} times, {duration(whole_ms)} in all, as often as models "
            "are evaluated: so are those of a Pipeline that is tuned as a whole, once for each fold and each "
            "set of parameters",
            "Fit these features once, before, and cache() what they make of the data; let CrossValidator "
            "or TrainValidationSplit tune the model alone, and not the whole Pipeline. (Features that learn "
            "from the label have to be fitted for each fold.)",
            evidence={
                "recomputation.times": times,
                "recomputation.cached": False,
                "recomputation.what": f"the features of {names}",
            },
        )

    def _fits(self, feature: str, evaluated: int) -> int:
        """Return how often a feature was fitted: each time, it may run several stages of one place."""
        ran = self._rarest(feature)
        of_each = max(1, round(ran / evaluated))
        return ran // of_each if of_each <= _MOST_OF_ONE else 0

    def _rarest(self, file: str) -> int:
        """Return how often the stages ran of that place in a file where they ran most rarely."""
        of_file = (times for place, times in self._times.items() if _file(place) == file)
        return min((times for times in of_file if times >= _LEAST_TIMES), default=0)

    def _are_of_the_same_rows(self, files: Collection[str]) -> bool:
        """Return whether features are fitted to the same data, as to each fold for each set of parameters.

        A program that fits them to the data of one shop after the other reads other rows each time. The stage
        that reads most says it.
        """
        of_files = (rows for place, rows in self._rows.items() if _file(place) in files)
        rows = max(of_files, key=_read, default=Counter[int]())
        return _read(rows) >= _LEAST_ROWS * rows.total() and 2 * len(rows) <= rows.total()


def _read(rows: Counter[int]) -> int:
    return sum(number * times for number, times in rows.items())


def _file(place: str) -> str:
    match = _PLACE.fullmatch(place)
    return match[1] if match is not None else ""
