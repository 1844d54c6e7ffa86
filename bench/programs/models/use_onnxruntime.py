"""Makes a model, opens a session and runs it."""

import numpy
import onnxruntime
import steady
from onnx import TensorProto, helper

SIZE = 256


def value(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIZE, SIZE])


def work():
    product = helper.make_node("MatMul", ["x", "y"], ["z"])
    graph = helper.make_graph([product], "product", [value("x"), value("y")], [value("z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = numpy.arange(SIZE * SIZE, dtype=numpy.float32).reshape(SIZE, SIZE) / 1e5
    return session.run(None, {"x": x, "y": x})[0].sum()


steady.run(work)
