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

/** Minor version of vLLM that has V1 by default. */
const FIRST_V1 = 8;

/** vLLM V1. */
export const VLLM_V1: EngineConstants = engines.constants.v1.values;

/**
 * Constants of a version of vLLM, of which V1 is the default engine since 0.8 and asynchronous scheduling since 0.14. Those of
 * V1 are fitted to 0.15; without asynchronous scheduling CPU work between iterations adds to them.
 *
 * @param version `0.<minor>` and what follows; others count as the newest.
 */
export function vllmConstants(version: string): EngineConstants {
  if (vllmMinor(version) < FIRST_V1) return VLLM_V0;
  const { asyncScheduling, iterationUs, perSequenceUs } = statedOverheads('vllm', version).values;
  if (asyncScheduling) return VLLM_V1;
  const { baseUs, perDecodeSequenceUs } = VLLM_V1;
  return {
    ...{ ...VLLM_V1, asyncScheduling, baseUs: baseUs + iterationUs },
    perDecodeSequenceUs: perDecodeSequenceUs + perSequenceUs,
  };
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
type Stated = { readonly source: string; readonly values: EngineOverheads };

/** By engine, version and scheduling: those that were asked for are the same objects. */
const STATED = new Map<string, Stated>();

/**
 * Overheads of an engine, and where they come from.
 * @param version vLLM's `0.<minor>`, SGLang's `0.5.<patch>`, and what follows; others count as the newest.
 * @param asyncScheduling Of vLLM V1, whether it schedules an iteration while the one before it runs. Default: as the version does.
 */
export function statedOverheads(
  engine: 'vllm' | 'sglang',
  version: string | null,
  asyncScheduling?: boolean,
): Stated {
  const isSglang = engine === 'sglang';
  const number = vllmMinor(isSglang ? (version ?? '').replace(/^0\.5\./, '0.') : (version ?? ''));
  const { sglang, sglangBefore, vllm, vllmBefore } = engines.overheads;
  const { before: firstAsync, ...synchronous } = vllm.synchronous;
  const isSync = !isSglang && number >= FIRST_V1 && !(asyncScheduling ?? number >= firstAsync);
  const stated: { before: number; source: string; values: Partial<EngineOverheads> }[] = isSglang
    ? sglangBefore
    : vllmBefore;
  // Newest first: a version takes the last entry that it is older than.
  const older = stated.findLast(({ before }) => number < before);
  const key = `${engine} ${older?.before} ${isSync}`;
  const parts = [isSglang ? sglang : vllm, ...(older ? [older] : []), ...(isSync ? [synchronous] : [])];
  const found = STATED.get(key) ?? {
    source: parts[parts.length - 1].source,
    values: Object.assign({}, ...parts.map(({ values }) => values)) as EngineOverheads,
  };
  STATED.set(key, found);
  return found;
}
