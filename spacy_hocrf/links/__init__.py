"""Links between spans, sentences or Docs: a vertex for each pair that may be linked, factors over
neighbouring ones.
"""
