import { summarize } from '@servegym/simulator';
import {
  type EngineConstants,
  findModel,
  leftOutConstants,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
  VLLM_V1,
} from '@servegym/simulator/calibration';
import { REFERENCE_DATA } from '../arguments/reference-data.ts';
import { errorPercent, type ServedLoadErrors, type ServedLoadFidelity } from './fidelity.ts';

/** Errors of one set of constants on the loads of real servers. @param text JSON list of loads */
export function servedLoadFidelity(text: string): ServedLoadFidelity[] {
  const loads = parseServedLoads(text, REFERENCE_DATA.servedLoads.path);
  const leftOut = leftOutConstants(loads);
  return loads.map((load, i) => ({
    run: load.run,
    model: findModel(load.model).name,
    gpus: load.tp,
    ...servedLoadErrors(load, VLLM_V1),
    leftOut: servedLoadErrors(load, leftOut[i]),
  }));
}

function servedLoadErrors(load: ServedLoad, constants: EngineConstants): ServedLoadErrors {
  const run = simulateServedLoad(load, constants);
  const ttft = summarize(run.ttftMs);
  return {
    ttftMean: errorPercent(ttft.mean, load.ttft_mean_ms),
    ttftP99: errorPercent(ttft.p99, load.ttft_p99_ms),
    e2eMean: errorPercent(summarize(run.e2eMs).mean, load.e2e_mean_ms),
  };
}
