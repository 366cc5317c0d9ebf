"""`python -m spacy hocrf convert`: annotated texts of other tools as spaCy's."""
