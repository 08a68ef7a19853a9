"""The tables of a report: a file each, which says how a table is made, ordered and shown; and their list."""
