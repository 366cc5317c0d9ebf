"""A frozen encoder: what an ONNX model says of every token, in `doc.tensor`."""
