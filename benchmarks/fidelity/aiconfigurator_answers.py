"""Answers of NVIDIA's aiconfigurator for the operating points of its own silicon_sample.csv, one JSON line each.

    python3 -m venv venv && venv/bin/pip install aiconfigurator==0.12.0
    venv/bin/python benchmarks/fidelity/aiconfigurator_answers.py > answers.jsonl
    venv/bin/python benchmarks/fidelity/aiconfigurator_answers.py --contributed benchmarks/fidelity/contributed >> answers.jsonl

Rows that docs/fidelity.md holds out are left out here too (--held-out: those alone). Each row is asked for with its own
engine version and precisions first; where the package has no tables of them, with the version that it maintains, with the
precisions that it infers, and at last with its estimates for missing tables. A row that it still refuses has an `error`.
"""
import argparse
import csv
import itertools
import json
import logging
import os
import re
import statistics
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ["AIC_ALLOW_UNLISTED_VERSIONS"] = "1"
warnings.filterwarnings("ignore")

import aiconfigurator_core  # noqa: E402
from aiconfigurator.cli.api import cli_estimate  # noqa: E402

# Models whose shape the package has under another name; it would download the others.
MODELS = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
    "zhipuai/GLM-5": "zai-org/GLM-5",
}
# Names of GPUs, as `--gpu` of `fidelity add` has them.
SYSTEMS = {"a100-80gb": "a100_sxm", "h100-80gb": "h100_sxm", "h200-141gb": "h200_sxm", "b200-180gb": "b200_sxm"}
HELD_OUT_GPUS = ("b300", "gb200", "gb300")
HELD_OUT_ON_VLLM = ("qwen3-32b", "llama-3.1-70b")


def is_held_out(row: dict[str, str]) -> bool:
    model = row["model_path"].lower()
    return (
        row["mode"] != "agg"
        or row["system"].startswith(HELD_OUT_GPUS)
        or "kimi-k2.5" in model
        or (row["backend"] == "vllm" and any(name in model for name in HELD_OUT_ON_VLLM))
    )


def number(text: str) -> int | None:
    return int(text) if text not in ("", "0") else None


def parallel(row: dict[str, str]) -> tuple[int, int, int]:
    """GPUs of a replica of the attention, replicas, and GPUs that the experts are divided over.

    The columns differ by source, see benchmarks/fidelity/operating-points.ts.
    """
    tp, ep, dp = int(row["tp_size"]), number(row["moe_ep_size"]) or 1, number(row["attention_dp_size"])
    of_experts = (number(row["moe_tp_size"]) or 1) * ep
    if dp is not None and dp > 1:
        return tp, 1, tp
    if dp is None and of_experts > tp:
        return tp, of_experts // tp, ep
    if dp == 1 and ep > 1:
        return ep, 1, ep
    return tp, 1, ep


def answer(row: dict[str, str], lengths: float, version: str, mode: str, own_precision: bool) -> dict[str, float]:
    tp, dp, ep = parallel(row)
    in_flight = re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"])
    concurrency = int(in_flight[1]) if in_flight else int(row["batch_size"]) * (number(row["attention_dp_size"]) or 1)
    result = cli_estimate(
        MODELS.get(row["model_path"], row["model_path"]),
        row["system"],
        backend_name=row["backend"],
        backend_version=version,
        database_mode=mode,
        isl=round(lengths * int(row["isl"])),
        osl=round(lengths * int(row["osl"])),
        batch_size=max(1, concurrency // dp),
        tp_size=tp,
        attention_dp_size=dp,
        moe_tp_size=tp * dp // ep,
        moe_ep_size=ep,
        gemm_quant_mode=(row["gemm_quant_mode"] or None) if own_precision else None,
        moe_quant_mode=(row["moe_quant_mode"] or None) if own_precision else None,
    )
    return {"ttft_ms": result.ttft, "tpot_ms": result.tpot}


def best_answer(row: dict[str, str], lengths: float) -> dict[str, object]:
    error = ""
    # Measured tables before estimates, and the row's precisions before those that the package infers from the model.
    for mode, own_precision in itertools.product(("SILICON", "HYBRID"), (True, False)):
        for version in dict.fromkeys([row["backend_version"] or "current", "current"]):
            try:
                found = answer(row, lengths, version, mode, own_precision)
                return found | {"version": version, "mode": mode}
            except Exception as problem:  # noqa: BLE001: any refusal is an answer
                error = error or f"{type(problem).__name__}: {problem}"[:200]
    return {"error": error}


def contributed_rows(folder: Path) -> Iterator[dict[str, str]]:
    """Closed loops that were added to benchmarks/fidelity/contributed, of plain servers of 16-bit weights, as rows of the table."""
    for path in sorted(folder.glob("*.json")):
        load = json.loads(path.read_text())
        words = load["command"].split()
        if load.get("concurrency") is None or load["gpu"] not in SYSTEMS or "--quantization" in words:
            continue
        tensor = words[words.index("--tensor-parallel-size") + 1] if "--tensor-parallel-size" in words else "1"
        isl, osl = (str(round(statistics.mean(request[at] for request in load["requests"]))) for at in (1, 2))
        yield {
            "id": path.name,
            "silicon_data_source": f"silicon_concurrency={load['concurrency']}",
            "backend": "vllm",
            "backend_version": re.search(r"vLLM ([\d.]+\d)", load["source"])[1],
            "model_path": words[2],
            "system": SYSTEMS[load["gpu"]],
            **{"mode": "agg", "isl": isl, "osl": osl, "tp_size": tensor, "moe_tp_size": tensor},
            **{"moe_ep_size": "1", "attention_dp_size": "1", "gemm_quant_mode": "", "moe_quant_mode": ""},
        }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--points", type=Path, help="default: silicon_sample.csv of the installed package")
    options.add_argument("--contributed", type=Path, help="folder of contributed measurements, instead of points")
    options.add_argument("--lengths", type=float, default=0.9, help="mean length over the nominal one")
    options.add_argument("--backends", nargs="+", default=["vllm", "sglang"])
    options.add_argument("--held-out", action="store_true")
    asked = options.parse_args()
    points = asked.points or Path(aiconfigurator_core.__file__).parent / "systems/silicon_sample.csv"
    logging.disable(logging.CRITICAL)
    known: dict[tuple[str, ...], dict[str, object]] = {}
    if asked.contributed:
        rows = list(contributed_rows(asked.contributed))
    else:
        with open(points, newline="") as file:
            rows = [row for row in csv.DictReader(file) if is_held_out(row) == asked.held_out]
    for row in rows:
        if row["backend"] not in asked.backends or row["mode"] != "agg":
            continue
        key = tuple(value for name, value in row.items() if name not in ("id", "silicon_ttft_ms", "silicon_tpot_ms"))
        if key not in known:
            known[key] = best_answer(row, 1 if asked.contributed else asked.lengths)
        print(json.dumps({"id": row["id"], **known[key]}), flush=True)
        print(f"\r{row['id']}", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
