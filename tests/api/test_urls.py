"""URLs as they may be shown."""

from __future__ import annotations

import pytest

from spark_events.api.toolkit.formatting import (
    path_without_secrets,
    text_without_secrets_of,
    text_without_url_secrets,
    url_without_secrets,
)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("sftp://me:pa/ss wo@rd@host/logs", "sftp://******@host/logs"),
        ("https://host/log?sig=abc", "https://host/log?******"),
        ("s3a://bucket/logs", "s3a://bucket/logs"),
        ("/logs/app-?.zstd#1", "/logs/app-?.zstd#1"),
        ("/logs//me@host", "/logs//me@host"),
    ],
)
def test_a_path_or_a_url_is_shown(path: str, shown: str) -> None:
    """Of a URL the user, the password and the query are hidden; a local path is shown as it is."""
    assert path_without_secrets(path) == shown
    if "://" in path:
        assert url_without_secrets(path) == shown


def test_urls_within_a_message_are_found() -> None:
    """Wherever they are; other words stay."""
    said = "'sftp://me:pass@host/a', s3a:/key:pass@bucket/b: GET https://host/c?t=1 failed? see a@b and C:/x"
    assert text_without_url_secrets(said) == (
        "'sftp://******@host/a', s3a:/******@bucket/b: GET https://host/c?****** failed? see a@b and C:/x"
    )


def test_parts_of_a_url_in_a_librarys_message_are_found() -> None:
    """A library shows the bucket's name, or the query alone."""
    shown = text_without_secrets_of("s3a://key:pass@bucket/x", 'Invalid bucket name "key:pass@bucket": pass')
    assert shown == 'Invalid bucket name "******@bucket": ******'
    assert text_without_secrets_of("https://host/x?sig=abc", "no /x?sig=abc") == "no /x?******"
