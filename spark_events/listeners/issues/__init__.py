"""What makes an application slow, as events."""
