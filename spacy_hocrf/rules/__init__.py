"""Rules about all spans of a text: what they say, how probably a text breaks them, their compiled form."""
