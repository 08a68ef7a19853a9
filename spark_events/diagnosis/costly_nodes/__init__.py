"""The rules about single nodes of plans: joins, scans, windows, shuffles, and what is done for each row."""
