"""Inference for chains, and optimisation, on arrays; nothing here depends on spaCy, features or
weights.
"""
