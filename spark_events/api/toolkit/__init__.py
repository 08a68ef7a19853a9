"""Helpers for authors of plugins: texts, disks, servers, threads, units, JSON of events."""
