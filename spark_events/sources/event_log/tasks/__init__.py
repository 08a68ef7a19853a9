"""What the tasks in an event log come to, so fast that a replay need not parse each."""
