"""Documents decoded together: what should agree in them, how they are decoded, and how its weights
are learnt.
"""
