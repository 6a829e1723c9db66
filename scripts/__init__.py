"""What is run from a checkout and not shipped."""
