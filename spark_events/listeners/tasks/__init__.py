"""What the user's own code reports from inside tasks."""
