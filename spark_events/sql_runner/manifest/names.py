"""The valid names of queries and sessions, which become parts of paths in the store."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,126}$"
NAME_RULE = "letters, digits, '.', '_' and '-', at most 127, the first a letter or a digit"
