"""Saved models, as bytes or folders; they are validated before anything is built from them."""
