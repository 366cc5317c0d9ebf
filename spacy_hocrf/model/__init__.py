"""The thinc models: weights and observations to log potentials, and the transpose."""
