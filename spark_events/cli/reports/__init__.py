"""The commands that read stored events as a whole, and those that serve what they make of them."""
