"""From log potentials to answers: decoders, predictions under rules, readings, explanations, pages."""
