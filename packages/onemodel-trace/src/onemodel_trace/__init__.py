"""Turn one eager run of a OneModel model into an ONNX graph with symbolic axes, or say why not."""
