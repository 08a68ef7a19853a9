"""Transactions and their journal: what each has done so far, and how abandoned ones end."""
