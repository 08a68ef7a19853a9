"""The rules about jobs of RDDs, which have no plan: caches, repeated stages, partitions fetched singly."""
