"""All settings together: what may be configured, and whether a configuration is right."""
