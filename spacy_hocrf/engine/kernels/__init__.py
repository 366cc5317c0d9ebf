"""The compiled recurrences, once for each instruction set; `spacy_hocrf.dispatch` chooses among
them.
"""
