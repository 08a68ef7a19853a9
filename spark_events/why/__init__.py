"""Where the time of an application went, and what made it slow, from its event log or stored events."""
