"""From a file, local or not, complete or growing, to the lines of an event log."""
