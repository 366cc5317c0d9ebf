"""Rules about all spans of a text: what they say, how probably it breaks them, what they mean for a model."""
