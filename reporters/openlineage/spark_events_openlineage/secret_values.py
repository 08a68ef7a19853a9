"""Maps of options that the client hands on to others, such as Kafka's producer: some are passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_events.api import Secret
from spark_events.api.option_types import SECRET, OptionType

_SECRET_KEY = re.compile(r"(?i)secret|passw|token|jaas|api.?key|credential|\.pem$|basic\.auth")


def with_secrets(of_map: OptionType[Mapping[str, str]]) -> OptionType[Mapping[str, str | Secret]]:
    """Return a type of maps in which what has the key of a password is secret; no message shows any of it."""

    def parse(text: str) -> Mapping[str, str | Secret]:
        pairs = of_map.parse(text).items()
        return {key: SECRET.parse(value) if _SECRET_KEY.search(key) else value for key, value in pairs}

    allowed = f"{of_map.allowed}, where a password may be env:NAME or file:/path"
    return OptionType(of_map.name, allowed, parse, secret=True)


def revealed(values: Mapping[str, str | Secret]) -> dict[str, str]:
    """Return the values as the client needs them."""
    return {key: value.reveal() if isinstance(value, Secret) else value for key, value in values.items()}
