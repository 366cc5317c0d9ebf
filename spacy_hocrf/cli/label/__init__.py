"""`python -m spacy hocrf label`: a page to annotate on, with a model that learns meanwhile.

Spans are stretches of characters here, (start, end, label); between the page and the session, tokens.
"""
