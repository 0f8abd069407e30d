"""Reads [{"model": base64, "observations": [[...]], "bins_in_force": [[...]]}, ...], answers what each model chooses."""

import base64
import json
import sys

import numpy
import onnxruntime


def choices(request: dict) -> dict:
    session = onnxruntime.InferenceSession(
        base64.b64decode(request["model"]), providers=["CPUExecutionProvider"]
    )
    (bins,) = session.run(
        ["bins"],
        {
            "observation": numpy.array(request["observations"], dtype=numpy.float32),
            "bins_in_force": numpy.array(request["bins_in_force"], dtype=numpy.int64),
        },
    )
    return {"bins": bins.tolist(), "metadata": session.get_modelmeta().custom_metadata_map}


json.dump([choices(request) for request in json.load(sys.stdin)], sys.stdout)
