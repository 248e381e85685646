#!/usr/bin/env python3
"""ONNX Runtime and OpenVINO as contestants: onnx_peer.py FOLDER onnxruntime|openvino BATCH THREADS

Both score deploy_BATCH.onnx in 32-bit floats: OpenVINO would take 16 bits on processors that have them. The pictures
are bound once. OpenVINO is asked in both of its ways, and by its own clock, which leaves Python out; the faster one
counts.
"""

import functools
import sys

import numpy as np
from measure import milliseconds, of_rounds, run_of_rounds, say

folder, program, batch, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
model = f"{folder}/deploy_{batch}.onnx"
pictures = np.load(f"{folder}/pictures.npy")[:batch].copy()


def onnxruntime():
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    bound = session.io_binding()
    bound.bind_cpu_input(session.get_inputs()[0].name, pictures)
    bound.bind_output(session.get_outputs()[0].name)
    step = functools.partial(session.run_with_iobinding, bound)
    step()
    return bound.copy_outputs_to_cpu()[0], milliseconds(step)


def openvino():
    import openvino as ov

    hints = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
    }
    request = ov.Core().compile_model(model, "CPU", hints).create_infer_request()
    request.set_input_tensor(ov.Tensor(pictures, shared_memory=True))

    def queued():
        request.start_async()
        request.wait()

    def latency(way):
        way()
        return request.latency

    request.infer()
    answer = request.get_output_tensor().data.copy()
    ways = [functools.partial(latency, way) for way in (request.infer, queued)]
    return answer, min(of_rounds(run_of_rounds(way)) for way in ways)


answer, ms = {"onnxruntime": onnxruntime, "openvino": openvino}[program]()
apart = float(np.abs(answer - np.load(f"{folder}/probabilities.npy")[:batch]).max())
say(ms=ms, apart=apart)
