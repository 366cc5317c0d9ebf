"""What a component learns from a corpus: features, settings, weights, costs, prices, a temperature."""
