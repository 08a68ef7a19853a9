"""All settings of the framework, as they are declared beside the code that reads them."""

from __future__ import annotations

from spark_events.ctas.settings import CtasSettings
from spark_events.listeners.scope_formats import ScopeFormats
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.settings import Declared, declared_in
from spark_events.runtime.setup import ReporterSettings, SharedSettings

OF_REPORTERS = tuple(declared_in(ReporterSettings).values())
"""The options of all reporters, below ``spark.<kind>.reporter.<name>.``."""
OF_THE_FRAMEWORK: tuple[Declared, ...] = tuple(
    declared
    for settings_class in (ListenerSettings, ScopeFormats, SharedSettings)
    for declared in declared_in(settings_class).values()
)
OF_CTAS = tuple(declared_in(CtasSettings).values())
