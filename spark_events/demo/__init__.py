"""A demonstration on local Spark: what one gets, in a minute and without a server."""
