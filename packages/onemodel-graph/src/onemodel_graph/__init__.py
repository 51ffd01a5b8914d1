"""Load an ONNX or OneModel file, plan it and run it: fast, or bit for bit the same everywhere."""
