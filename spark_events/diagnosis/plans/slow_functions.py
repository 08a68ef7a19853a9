"""Functions of Spark's own that may take long for a row."""

from __future__ import annotations

from spark_events.diagnosis.plans.join_keys import functions_of

PATTERNS = frozenset((
    "regexp_extract", "regexp_extract_all", "regexp_replace", "regexp_count", "regexp_instr",
    "regexp_substr", "rlike", "split",
))  # fmt: skip
"""Those that look for a regular expression."""
SLOW = PATTERNS | frozenset((
    "from_json", "to_json", "get_json_object", "json_tuple",
    "parse_json", "from_xml", "to_xml", "xpath", "xpath_string", "from_csv", "parse_url", "sha", "sha1",
    "sha2", "md5", "aes_encrypt", "aes_decrypt", "reflect", "java_method", "levenshtein", "soundex",
    "transform", "filter", "exists", "aggregate", "array_sort", "sort_array", "array_distinct",
    "array_intersect", "array_except", "arrays_overlap", "sequence", "date_format", "unix_timestamp",
    "gettimestamp", "from_utc_timestamp", "to_utc_timestamp", "format_number",
))  # fmt: skip
"""All of them, in lower case. Others are not named: a text may look like a call."""
_UNKNOWN = ("UDF", "Invoke", "invoke", "InPandas", "InArrow", "EvalPython")
"""What is in the texts of nodes that call functions of which nobody knows how long they take."""


def slow_in(text: str) -> set[str]:
    """Return the functions in the text of a node that may take long for a row, in lower case."""
    return {function.lower() for function in functions_of(text)} & SLOW


def calls_unknown(text: str) -> bool:
    """Return whether the text of a node has calls of which nobody knows how long they take."""
    return any(name in text for name in _UNKNOWN)
