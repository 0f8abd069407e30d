import engines from './engines.json' with { type: 'json' };

/**
 * Shares of the data sheet figures that an engine reaches, for all models, and the time that it adds. The README of this
 * package explains each.
 */
export type EngineConstants = Readonly<typeof engines.constants.v1.values>;

/** vLLM before V1. */
export const VLLM_V0: EngineConstants = {
  ...engines.constants.v0.values,
  allReduceEfficiency: Number.POSITIVE_INFINITY,
};

/** vLLM V1. */
export const VLLM_V1: EngineConstants = engines.constants.v1.values;

/**
 * Constants of a version of vLLM, of which V1 is the default engine since 0.8 and asynchronous scheduling since 0.14. Those of
 * V1 are fitted to 0.15.
 *
 * @param version `0.<minor>` and what follows; others count as the newest.
 */
export function vllmConstants(version: string): EngineConstants {
  const minor = vllmMinor(version);
  if (minor < 8) return VLLM_V0;
  return minor < 14 ? { ...VLLM_V1, asyncScheduling: false } : VLLM_V1;
}

/** The number behind `0.` of a version of vLLM. */
function vllmMinor(version: string): number {
  return Number(/^0\.(\d+)/.exec(version)?.[1] ?? Number.POSITIVE_INFINITY);
}

type Overheads = typeof engines.overheads.vllm.values;
/** Time that an engine adds to the kernels of an iteration, and to a request. The README explains each. */
export type EngineOverheads = Readonly<
  Omit<Overheads, 'paddedExpertsUs'> & {
    paddedExpertsUs: number | null;
    prefillFirst?: boolean;
    eagerPrefill?: boolean;
  }
>;

export const VLLM_OVERHEADS: EngineOverheads = engines.overheads.vllm.values;

/**
 * Overheads of an engine, and where they come from. @param version vLLM's `0.<minor>`, SGLang's `0.5.<patch>`, and what
 * follows; others count as the newest.
 */
export function statedOverheads(
  engine: 'vllm' | 'sglang',
  version: string | null,
): { readonly source: string; readonly values: EngineOverheads } {
  const isSglang = engine === 'sglang';
  const number = vllmMinor(isSglang ? (version ?? '').replace(/^0\.5\./, '0.') : (version ?? ''));
  const { sglangBefore, vllmBefore } = engines.overheads;
  // Newest first: a version takes the last entry that it is older than.
  const older = (isSglang ? sglangBefore : vllmBefore).findLast(({ before }) => number < before);
  return older ?? engines.overheads[engine];
}

/** Overheads of an engine. @param version As in `statedOverheads`. */
export function engineOverheads(engine: 'vllm' | 'sglang', version: string | null): EngineOverheads {
  return statedOverheads(engine, version).values;
}
