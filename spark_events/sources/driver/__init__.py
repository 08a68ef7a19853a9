"""The live source: the driver's listener bus, over a bridge in its JVM."""
