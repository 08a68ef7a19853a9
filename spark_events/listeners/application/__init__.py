"""The application as a whole: its status, heartbeats, and how it ended."""
