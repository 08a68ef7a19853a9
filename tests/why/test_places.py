"""What has an issue, in words."""

from __future__ import annotations

import pytest

from spark_events.why.places import in_words, with_article


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("stage 3.0 (count at a.py:1)", "the count at a.py:1 (stage 3.0)"),
        ("stage 3.0 (query of t into u)", "the write into u from t (stage 3.0)"),
        ("stage 3.0 (query of t into u), etl.py:31", "the write into u from t (stage 3.0, etl.py:31)"),
        ("SQL execution 2 (parquet of t, u into v)", "the write into v from t, u (SQL execution 2)"),
        ("SQL execution 2 (parquet into v)", "the write into v (SQL execution 2)"),
        ("SQL execution 2 (parquet of v)", "the parquet of v (SQL execution 2)"),
        ("SQL execution 2 (showString of t)", "the show of t (SQL execution 2)"),
        ("SQL execution 2 (sql of t into u)", "the write into u from t (SQL execution 2)"),
        ("SQL execution 2 (sql of t)", "the query of t (SQL execution 2)"),
        ("SQL execution 2 (count of t)", "the count of t (SQL execution 2)"),
        ("3 stages (collect at a.py:1)", "the collect at a.py:1 (3 stages)"),
        ("3 SQL executions (parquet of t into u)", "the write into u from t (3 SQL executions)"),
        ("stage 3.0 (parquet)", "parquet (stage 3.0)"),
        ("stage 3.0", "stage 3.0"),
        ("query 'orders'", "query 'orders'"),
        ("query '3f2a0c11-9329-4266-b400-337d6fdbd09c'", "query '3f2a0c11-9329-4266-b400-337d6fdbd09c'"),
        (
            "query '3f2a0c11-9329-4266-b400-337d6fdbd09c' (of file:/orders into file:/daily)",
            "the query of file:/orders into file:/daily (3f2a0c11…)",
        ),
        ("application 'nightly'", "application 'nightly'"),
    ],
)
def test_the_name_that_people_know_comes_first(about: str, words: str) -> None:
    assert in_words(about) == words


def test_long_paths_keep_their_ends() -> None:
    about = f"stage 3.0 (csv of file:/{'a' * 90}/raw/orders into file:/warehouse/daily/orders)"
    assert in_words(about) == "the write into …/daily/orders from …/raw/orders (stage 3.0)"


def test_an_action_of_which_only_the_method_is_known_has_no_article() -> None:
    assert with_article("parquet") == "parquet"
