"""Generalized higher-order CRFs: patterns over any vertices, and their decoding. Arrays in, arrays
out; no Docs, no features.
"""
