"""A demonstration on local Spark: reporters at work, in a minute and without a server."""
