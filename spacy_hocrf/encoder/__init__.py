"""A frozen encoder: sets `doc.tensor` to the token vectors of an ONNX model."""
