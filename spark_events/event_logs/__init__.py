"""The commands that read event logs."""
