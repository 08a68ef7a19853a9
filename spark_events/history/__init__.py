"""From stored events to tables and a report: uptime, checkpoints against an SLA, failures."""
