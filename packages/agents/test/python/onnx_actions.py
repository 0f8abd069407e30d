"""Reads {"model": base64, "observations": [[...]], "bins_in_force": [[...]]}, answers what the model chooses."""

import base64
import json
import sys

import numpy
import onnxruntime

request = json.load(sys.stdin)
session = onnxruntime.InferenceSession(
    base64.b64decode(request["model"]), providers=["CPUExecutionProvider"]
)
bins, logits = session.run(
    ["bins", "logits"],
    {
        "observation": numpy.array(request["observations"], dtype=numpy.float32),
        "bins_in_force": numpy.array(request["bins_in_force"], dtype=numpy.int64),
    },
)
metadata = session.get_modelmeta().custom_metadata_map
json.dump({"bins": bins.tolist(), "logits": logits.tolist(), "metadata": metadata}, sys.stdout)
