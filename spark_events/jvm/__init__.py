"""Java sources that are compiled in a driver's JVM, and those that several packages share."""
