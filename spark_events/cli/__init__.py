"""The command line: each command parses, calls the library, prints, and chooses the exit code."""
