"""Generalized higher-order CRFs: patterns over any vertices, and their decoding. Works on arrays;
nothing here depends on Docs or features.
"""
