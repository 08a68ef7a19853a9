"""The history of applications and queries: PySpark jobs over stored events, and a report of them."""
