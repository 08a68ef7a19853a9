"""How the application ended, and who tells it if the driver cannot."""
