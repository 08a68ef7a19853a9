"""What all commands share: the terminal, options, outputs, help."""
