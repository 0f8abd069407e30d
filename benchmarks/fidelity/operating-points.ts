import { findModel, type ServedModel } from '@servegym/profiles';
import { mean, summarize } from '@servegym/simulator/statistics';
import { type CsvRow, readCsv } from '../../packages/profiles/src/tables/read-csv.ts';
import { errorPercent } from './assess-fidelity.ts';
import { campaignOf } from './campaigns.ts';

const COLUMNS = [
  ...(['id', 'silicon_data_source', 'backend', 'backend_version', 'model_path', 'system'] as const),
  ...(['precision', 'mode', 'isl', 'osl', 'batch_size', 'tp_size', 'attention_dp_size'] as const),
  ...(['moe_tp_size', 'moe_ep_size', 'silicon_ttft_ms', 'silicon_tpot_ms'] as const),
] as const;
type Column = (typeof COLUMNS)[number];
type Row = CsvRow<Column>;

const ENGINES = ['vllm', 'sglang'] as const;
/**
 * Rows that no constant of the simulator was chosen by: Kimi-K2.5, GPUs newer than B200, prefill and decode apart; on
 * vLLM also Qwen3-32B and Llama-3.1-70B.
 */
function isHeldOut(row: Row): boolean {
  const model = row.text('model_path');
  return (
    row.text('mode') !== 'agg' ||
    /^(b300|gb200|gb300)/.test(row.text('system')) ||
    /kimi-k2\.5/i.test(model) ||
    (row.text('backend') === 'vllm' && /qwen3-32b|llama-3\.1-70b/i.test(model))
  );
}

/** Mean latencies of a server that has a number of requests in flight. */
export type OperatingPoint = Readonly<ReturnType<typeof parseOperatingPoints>[number]>;

/**
 * Reads the operating points of vLLM and SGLang in `systems/silicon_sample.csv` of NVIDIA's aiconfigurator-core. Rows that
 * are held out are skipped before anything of them but engine, model, GPU and mode is looked at.
 *
 * @param heldOut True: the rows that are held out, but for those with prefill and decode apart, and no others.
 * @throws {ProfileError} with the line that is wrong.
 */
export function parseOperatingPoints(text: string, source: string, heldOut = false) {
  return readCsv(text, source, COLUMNS).flatMap((row) => {
    const engine = ENGINES.find((each) => each === row.text('backend'));
    if (engine === undefined || isHeldOut(row) !== heldOut || row.text('mode') !== 'agg') return [];
    const number = (name: Column) => row.number(name, { isAboveZero: true });
    const data = row.text('silicon_data_source');
    const labels = {
      id: row.text('id'),
      engine,
      version: row.text('backend_version'),
      /** Hugging Face id. */
      model: row.text('model_path'),
      /** Folder of the GPU's kernel tables, for instance `h200_sxm`. */
      system: row.text('system'),
      /** As the table has it: `fp8`, `fp4`, `bf16`; empty for 16-bit weights. */
      precision: row.text('precision'),
      concurrency:
        Number(/silicon_concurrency=(\d+)/.exec(data)?.[1] ?? 0) ||
        number('batch_size') * (Number(row.text('attention_dp_size')) || 1),
      /** Nominal lengths, tokens. */
      inputTokens: number('isl'),
      outputTokens: number('osl'),
      ...parallelOf(row),
      ttftMs: number('silicon_ttft_ms'),
      tpotMs: number('silicon_tpot_ms'),
    };
    return [{ ...labels, ...campaignOf(data, labels) }];
  });
}

/**
 * Division over GPUs. The table's columns differ by source. Rows of InferenceX with experts divided over GPUs have `tp_size`
 * multiplied with `moe_ep_size`, or `attention_dp_size` equal to it and `moe_ep_size` squared: the scripts of both set tensor and
 * expert parallelism alone, and both have equal times. Other sources leave `attention_dp_size` empty. `data`: replicas of the
 * attention that share the experts; `expert`: GPUs that the experts are divided over, 1 where each is divided as the other
 * weights are.
 */
function parallelOf(row: Row) {
  const or = (name: Column, other: number) => Number(row.text(name)) || other;
  const [tp, ep] = [row.number('tp_size', { isAboveZero: true }), or('moe_ep_size', 1)];
  const ofExperts = or('moe_tp_size', 1) * ep;
  const dp = or('attention_dp_size', 0);
  if (dp > 1) return { tensor: tp, data: 1, expert: tp };
  if (dp === 0 && ofExperts > tp) return { tensor: tp, data: ofExperts / tp, expert: ep };
  if (dp === 1 && ep > 1) return { tensor: ep, data: 1, expert: ep };
  return { tensor: tp, data: 1, expert: ep };
}

/** A prediction of an operating point, or why there is none. */
export type PointAnswer = { readonly ttftMs: number; readonly tpotMs: number } | { readonly error: string };

export interface PointRow {
  readonly point: OperatingPoint;
  readonly ours: PointAnswer;
  /** Under each other assumption on what is unknown of its campaign, by the assumption's name. */
  readonly assumed: Readonly<Record<string, PointAnswer>>;
  /** Under the constants that all rows of the engine together fit, and those that rows of other campaigns or models do. */
  readonly refitted: Readonly<Record<keyof typeof LEFT_OUT | 'none', PointAnswer>> | null;
  /** Of another estimator; `null` where it was not asked. */
  readonly theirs: PointAnswer | null;
}

/** The model that a Hugging Face id names, whatever the precision of its weights. @throws {ProfileError} */
export function pointModel({ model }: OperatingPoint): ServedModel {
  const name = model.replace(/^nvidia\/Llama/, 'meta-llama/Llama').replace(/-(FP8|NVFP4)$/, '');
  return findModel(name);
}

/** What a fit leaves out, by the kind of group: a campaign's engine version, or a model, of which those of one shape are one. */
export const LEFT_OUT = {
  campaign: ({ campaign, version }: OperatingPoint) => `${campaign}, version ${version || 'unknown'}`,
  model: (point: OperatingPoint) => JSON.stringify(knownModel(point)?.shape ?? point.model),
};

/** TPOTs of one server agree this well, of the smaller. */
const SAME_SERVER = 1.05;

/**
 * Of points that agree in all labels but not in their TPOT, those with the smallest and the largest: the table does not
 * name what their servers differ in. Models of one shape count as one.
 */
function contradictions(rows: readonly PointRow[]): ReadonlyMap<PointRow, 'faster' | 'slower'> {
  const labels = ({ point }: PointRow) => {
    const { id: _, model, ttftMs: __, tpotMs: ___, ...others } = point;
    return JSON.stringify([knownModel(point)?.shape ?? model, others]);
  };
  const found = new Map<PointRow, 'faster' | 'slower'>();
  for (const twins of Map.groupBy(rows, labels).values()) {
    const times = twins.map(({ point }) => point.tpotMs);
    const least = Math.min(...times);
    if (Math.max(...times) <= least * SAME_SERVER) continue;
    for (const row of twins) found.set(row, row.point.tpotMs <= least * SAME_SERVER ? 'faster' : 'slower');
  }
  return found;
}

/** Name of the group that a row belongs to; `null`: none. */
const GROUPS: readonly ((row: PointRow, twin: 'faster' | 'slower' | undefined) => string | null)[] = [
  () => 'all',
  // Of the others the server ran fewer requests at once than the label says, or may have speculated.
  ({ point: { unknown } }) =>
    unknown.includes('runsAtOnce') || unknown.includes('drafts')
      ? null
      : 'rows whose labels say what was measured',
  ({ point }) => `campaigns of which ${point.unknown.length === 0 ? 'all is known' : 'something is unknown'}`,
  ({ point }) => LEFT_OUT.campaign(point),
  ({ point }) => shortName(point),
  ({ point }) => point.system,
  // Models that are not known count as mixtures.
  ({ point }) => (knownModel(point)?.experts === null ? 'dense' : 'mixture'),
  ({ point: { concurrency } }) =>
    concurrency <= 8
      ? 'concurrency up to 8'
      : concurrency <= 64
        ? 'concurrency 9 to 64'
        : 'concurrency above 64',
  (_, twin) => (twin === undefined ? null : `equal labels, the ${twin} server`),
  ({ point }) =>
    `${shortName(point)} in ${point.precision || 'bf16'} on ${point.system}, ${point.version || 'unknown'}`,
];

function shortName({ model }: OperatingPoint): string {
  return model.replace(/^.*\//, '');
}

/** Errors of all rows of an engine, and by what is known, campaign, model, GPU, kind of model, concurrency and all labels. */
export function pointGroups(rows: readonly PointRow[]) {
  const twins = contradictions(rows);
  return GROUPS.flatMap((nameOf) => {
    const groups = Map.groupBy(rows, (row) => nameOf(row, twins.get(row)));
    const names = [...groups.keys()].filter((name) => name !== null).sort();
    return names.map((group) => {
      const of = groups.get(group)!;
      const asked = of.some(({ theirs }) => theirs !== null);
      const refitted = (what: keyof NonNullable<PointRow['refitted']>) =>
        errorsOf(of, (row) => row.refitted?.[what] ?? row.ours);
      return {
        group,
        rows: of.length,
        leftOut: { campaign: refitted('campaign'), model: refitted('model') },
        fitted: refitted('none'),
        ours: errorsOf(of, ({ ours }) => ours),
        theirs: asked ? errorsOf(of, ({ theirs }) => theirs ?? { error: 'no answer' }) : null,
      };
    });
  });
}

/** Errors of the rows whose labels are wrong, each under the number of requests at once that comes nearest to its TPOT. */
export function nearestErrors(rows: readonly PointRow[]) {
  const wrong = rows.filter(({ point: { unknown } }) => unknown.includes('runsAtOnce'));
  return errorsOf(wrong, ({ point, assumed }) => {
    const distance = (answer: PointAnswer) =>
      'error' in answer ? Number.POSITIVE_INFINITY : Math.abs(Math.log(answer.tpotMs / point.tpotMs));
    return Object.values(assumed).reduce((a, b) => (distance(b) < distance(a) ? b : a));
  });
}

/** Errors under each assumption on what is unknown, by campaign, model and engine; `plain`: as everywhere else. */
export function assumptionGroups(rows: readonly PointRow[]) {
  const open = rows.filter(({ assumed }) => Object.keys(assumed).length > 0);
  const groups = Map.groupBy(
    open,
    ({ point }) => `${point.campaign}: ${shortName(point)} on ${point.engine}`,
  );
  return [...groups].sort().flatMap(([group, of]) => {
    const names = [...new Set(of.flatMap(({ assumed }) => Object.keys(assumed)))];
    return ['plain', ...names].map((assumption) => ({
      ...{ group, assumption, rows: of.length },
      errors: errorsOf(of, ({ ours, assumed }) => assumed[assumption] ?? ours),
    }));
  });
}

export type PointErrors = ReturnType<typeof errorsOf>;

/** Mean errors of one side over some rows, without their signs, and medians with them, %; `null` where it answers none. */
function errorsOf(rows: readonly PointRow[], answerOf: (row: PointRow) => PointAnswer) {
  const answered = rows.flatMap((row) => {
    const answer = answerOf(row);
    return 'error' in answer ? [] : [{ answer, point: row.point }];
  });
  const of = (what: 'ttftMs' | 'tpotMs') => {
    if (answered.length === 0) return { size: null, median: null };
    const errors = answered.map(({ answer, point }) => errorPercent(answer[what], point[what]));
    return { size: mean(errors.map(Math.abs)), median: summarize(Float64Array.from(errors)).p50 };
  };
  const [ttft, tpot] = [of('ttftMs'), of('tpotMs')];
  return {
    failed: rows.length - answered.length,
    ...{ ttft: ttft.size, tpot: tpot.size, ttftMedian: ttft.median, tpotMedian: tpot.median },
  };
}

function knownModel(point: OperatingPoint): ServedModel | undefined {
  try {
    return pointModel(point);
  } catch {
    return undefined;
  }
}
