"""The thinc models: from weights and observations to log potentials, and the transpose for gradients."""
