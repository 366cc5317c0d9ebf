"""Joint decoding of documents: which places should agree, how they are decoded, and how the weights are
learnt.
"""
