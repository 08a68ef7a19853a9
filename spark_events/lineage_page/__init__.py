"""Draws a graph of data as one HTML page: laid out, to be searched, with a column's path lit on click."""
