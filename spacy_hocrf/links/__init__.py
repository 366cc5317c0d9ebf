"""Links between spans, sentences or Docs: every pair that may be linked has a probability."""
