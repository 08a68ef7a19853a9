"""All settings of the framework, as they are declared beside the code that reads them."""

from __future__ import annotations

from spark_events.ctas.settings import CtasSettings
from spark_events.listeners.settings import declared_settings
from spark_events.runtime.settings import declared_in
from spark_events.runtime.setup import ReporterSettings, SharedSettings

OF_REPORTERS = tuple(declared_in(ReporterSettings).values())
"""The options of all reporters, below ``spark.<kind>.reporter.<name>.``."""
OF_THE_FRAMEWORK = (*declared_settings(), *declared_in(SharedSettings).values())
OF_CTAS = tuple(declared_in(CtasSettings).values())
