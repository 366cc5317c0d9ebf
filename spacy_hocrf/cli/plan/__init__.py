"""`python -m spacy hocrf plan`: what training on a larger corpus, by more workers, would take."""
