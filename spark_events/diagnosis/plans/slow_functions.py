"""Functions of Spark's own that may take long for a row."""

from __future__ import annotations

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
