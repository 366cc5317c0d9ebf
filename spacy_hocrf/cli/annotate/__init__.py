"""`python -m spacy hocrf annotate`: many texts, part by part."""
