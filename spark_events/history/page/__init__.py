"""The page of a report, and the server that keeps it up to date."""
