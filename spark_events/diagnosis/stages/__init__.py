"""What the tasks of one stage say about why it is slow."""
