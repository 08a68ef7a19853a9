"""What Spark needs around it: configuration files, sessions, Java, file systems, SQL text."""
