"""The application that hosts queries."""
