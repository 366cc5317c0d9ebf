"""The compiled sums over observations, once for each instruction set; `spacy_hocrf.dispatch`
chooses among them.
"""
