"""Sequences of items with attributes, as in CRF toolkits: no Docs, and a label for each item."""
