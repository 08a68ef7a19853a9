"""The store: what is deployed, what is ordered, what runs, on any file system that fsspec knows."""
