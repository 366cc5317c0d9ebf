"""Trainers, which [components.*.trainer] names, and the selection of label patterns."""
