"""Links between spans, sentences or Docs: a probability for every pair that may be linked."""
