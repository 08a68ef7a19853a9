"""What earlier runs took, and whether this one, or a part of it, is much slower."""
