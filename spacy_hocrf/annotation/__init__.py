"""What is known of Docs, read, and what is predicted, written: the one room that does either."""
