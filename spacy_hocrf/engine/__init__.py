"""Chain inference and optimisation: arrays in, arrays out; nothing here knows spaCy, features or
weights.
"""
