"""`python -m spacy hocrf convert`: convert annotated texts of other tools to spaCy's format."""
