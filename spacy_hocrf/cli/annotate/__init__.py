"""`python -m spacy hocrf annotate`: annotate many texts, part by part."""
