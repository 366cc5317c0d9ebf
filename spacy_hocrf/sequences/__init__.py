"""Sequences of items with attributes, as CRF toolkits have them: no Docs, labels of single items."""
