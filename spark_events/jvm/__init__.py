"""Compiles Java in the driver's JVM, and holds the Java that several packages share."""
