"""A package of his own."""
