"""One reporter's worker: what waits for it, its turns and calls, and the counted fate of each item."""
