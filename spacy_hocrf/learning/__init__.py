"""Learning from a corpus: features, settings, weights, costs of spans, prices of rules, a temperature."""
