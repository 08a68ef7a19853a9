"""The folder that keeps the facts of days, for several processes that add to it."""
