"""Processes, and actors of Ray, that share the work of training and of `hocrf annotate`."""
