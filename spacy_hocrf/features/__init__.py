"""Features: templates, their extraction and the feature index; the only folder that reads predicted Docs."""
