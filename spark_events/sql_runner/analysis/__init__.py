"""What Spark says of a manifest: whether its query is right, and whether it has changed."""
