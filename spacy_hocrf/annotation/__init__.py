"""Annotation of Docs: the only folder that reads gold annotation and writes predictions."""
