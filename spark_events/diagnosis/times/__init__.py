"""Where the time of a run went: booked to accounts, once, and what other numbers of cores would change."""
