"""What failed, of what type, and what enrichers say of it."""
