"""What is refused, or held back, before it does harm."""
