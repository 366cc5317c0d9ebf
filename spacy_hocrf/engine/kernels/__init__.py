"""The compiled recurrences, once for each instruction set; `spacy_hocrf.engine.dispatch` chooses among them."""
