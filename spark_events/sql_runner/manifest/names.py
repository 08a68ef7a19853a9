"""The names that queries and sessions may have: they are parts of paths in the store."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,126}$"
NAME_RULE = "letters, digits, '.', '_' and '-', at most 127, the first a letter or a digit"
