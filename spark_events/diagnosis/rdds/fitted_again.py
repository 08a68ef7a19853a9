"""The rule about features of MLlib that are fitted again for each evaluation of a model.

Tuning (``CrossValidator``, ``TrainValidationSplit``) fits all that its estimator has for each fold and for
each set of parameters. If that is a whole ``Pipeline``, it fits the same features each time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

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
_LEAST_TIMES, _MOST_PLACES = 4, 1_000


class FittedAgain:
    """Counts the stages of MLlib's features, and of its evaluations."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._wall_ms: Counter[str] = Counter()

    def take(self, stage_name: str, alone_ms: Callable[[], int]) -> Issue | None:
        """Called with each stage that has succeeded; returns what fitting features again has cost so far.

        Args:
            stage_name: Spark's, such as ``mapPartitions at Word2Vec.scala:450``.
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
        evaluated = self._most_of(_EVALUATES)
        fitted = {name: self._fits(name) for name in sorted(_FITS) if self._fits(name) >= evaluated}
        if evaluated < _LEAST_TIMES or not fitted:
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

    def _fits(self, file: str) -> int:
        """Return how often a feature was fitted, or a model evaluated: as often as the rarest stage ran."""
        of_file = (times for place, times in self._times.items() if _file(place) == file)
        return min((times for times in of_file if times >= _LEAST_TIMES), default=0)

    def _most_of(self, files: frozenset[str]) -> int:
        return max((self._fits(file) for file in files), default=0)


def _file(place: str) -> str:
    match = _PLACE.fullmatch(place)
    return match[1] if match is not None else ""
