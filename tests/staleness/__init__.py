"""Starts after a change: whatever was changed, an image must give what an ordinary start gives."""
