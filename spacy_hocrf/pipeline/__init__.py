"""The components, the only writers of a Doc: gold annotation, learning, decoding, persistence."""
