"""A deployer's side: compare, decide, and carry decisions out."""
