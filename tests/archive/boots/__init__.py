"""Whole boots with a boot archive: whatever was changed, damaged or taken away, they do what an ordinary boot does."""
