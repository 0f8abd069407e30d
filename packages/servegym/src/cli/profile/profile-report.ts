import { isDeepStrictEqual } from 'node:util';
import { profilesOnGpu } from '@servegym/operators';
import {
  type BenchCalibration,
  coefficientOf,
  coefficientsOf,
  errorPercent,
  estimatedProfile,
  GPUS,
  listProfiles,
  MODELS,
  priceOf,
  type StaticBatchCalibration,
  type StaticBatchRow,
} from '@servegym/profiles';
import {
  counted,
  type EngineProfile,
  type IterationLaw,
  kvPoolBlocks,
  kvTokens,
  PROFILE_STATUSES,
  type WeightPrecision,
} from '@servegym/simulator';
import { defineCommand } from '../command-table.ts';
import { readProfile } from '../files.ts';
import { type Form, facts, printResult, table } from '../output/print-result.ts';

export const listCommand = () =>
  defineCommand({
    options: {
      gpu: { value: '<text>', help: 'of a GPU, by its name or a part of it, for instance h200' },
      model: { value: '<text>', help: 'of models with this in their name, for instance qwen' },
      status: {
        value: '<status>',
        choices: PROFILE_STATUSES,
        help: 'measured on an engine, made from tables of kernel times, or estimated from data sheets',
      },
      json: { help: 'print a JSON list of profiles' },
    },
    action({ gpu, model, status, json }) {
      const onGpu = gpu === undefined ? listProfiles() : profilesOnGpu(listProfiles(), gpu);
      // But for case, spaces and hyphens.
      const plain = (words = '') => words.toLowerCase().replace(/[\s_-]/g, '');
      const ofModel = onGpu.filter((profile) => plain(profile.model.name).includes(plain(model)));
      const shown = ofModel.filter((profile) => status === undefined || profile.status === status);
      printResult(json, shown, profilesForm);
    },
  });

export const showCommand = () =>
  defineCommand({
    words: { profile: { value: '<name|file.json>', help: 'a shipped profile, or one in a file' } },
    options: { json: { help: 'print the profile as JSON' } },
    async action({ profile: name, json }) {
      printResult(json, await readProfile(name), { text: profileSheet });
    },
  });

const profilesForm: Form<readonly EngineProfile[]> = {
  text(profiles) {
    if (profiles.length === 0)
      return 'No shipped profile is of these. `servegym profile make` makes one of any GPU and model.';
    const errors = (mean: number | undefined, worst = 0) =>
      mean === undefined ? '-' : `${mean.toFixed(1)} / ${worst.toFixed(1)} %`;
    return [
      ...table(profiles, [
        ['profile', ({ name }) => name],
        ['status', ({ status }) => status],
        ['weights', ({ weights }) => Object.keys(weights).join(' ')],
        ['draft', ({ speculation }) => speculation?.method ?? '-'],
        ['rows', ({ fit }) => String(fit?.rows ?? '-')],
        ['fit error', ({ fit }) => errors(fit?.meanErrorPercent, fit?.worstErrorPercent)],
        ['left out', ({ fit }) => errors(fit?.heldOutMeanErrorPercent, fit?.heldOutWorstErrorPercent)],
      ]),
      '',
      `${counted(profiles.length, 'profile')}. Errors are mean / worst over the measured latencies; left out: each row predicted by a fit without it.`,
    ].join('\n');
  },
};

export function profileSheet(profile: EngineProfile): string {
  const { gpu, model, engine, fit, validity, speculation } = profile;
  const poolTokens = (precision: WeightPrecision) =>
    kvTokens(profile, kvPoolBlocks(profile, precision, false, 1));
  const range = ([low, high]: readonly [number, number]) => `${low} to ${high.toLocaleString('en-US')}`;
  const price = listProfiles().includes(profile) ? priceOf(gpu.name) : undefined;
  const { usdPerHour } = price ?? gpu;
  const usd = usdPerHour === 0 ? 'no price known (--prices gives one)' : `${usdPerHour} USD/h each`;
  const isFixed = price && price.usdPerHour !== gpu.usdPerHour;
  const errors = (mean: number, worst: number) => `error ${mean} % mean, ${worst} % worst`;
  const kv = `${model.kvBytesPerToken / 1024} KiB of KV a token${model.kvCache === 'FP8' ? ' in FP8' : ''}`;
  return [
    profile.name,
    '',
    ...facts(
      [
        ['GPU', `${gpu.count} x ${gpu.name}, ${gpu.memoryGiB} GiB, ${usd}`],
        ['price', price && `${price.source}, as in plan, tune and diff`],
        ['in rewards', isFixed && `${gpu.usdPerHour} USD/h each, fixed so that scores stay comparable`],
        ['model', `${model.name}, ${kv}`],
        ['engine', `${engine.name} (version: ${engine.version})`],
        ['status', profile.status],
        ['source', profile.source],
        ['valid for', `batch ${range(validity.batch)}, context ${range(validity.contextTokens)} tokens`],
        ['fit', fit && `${fit.rows} rows, ${errors(fit.meanErrorPercent, fit.worstErrorPercent)}`],
        ['left out', fit && errors(fit.heldOutMeanErrorPercent, fit.heldOutWorstErrorPercent)],
        ['made by', fit?.command],
        ['made by', estimateCommand(profile)],
        [
          'speculation',
          speculation &&
            `${speculation.method}, acceptance on ${Object.keys(speculation.survival).join(', ')}`,
        ],
      ],
      14,
    ),
    '',
    ...table(Object.entries(profile.weights), [
      ['weights', ([precision]) => precision],
      ['GiB a GPU', ([, { weightGiB }]) => weightGiB.toFixed(2)],
      ['KV tokens', ([precision]) => poolTokens(precision as WeightPrecision).toLocaleString('en-US')],
      ['base, ms', ([, { law }]) => (law.baseUs / 1000).toFixed(2)],
      ['weights, ms', ([, { law }]) => (law.weightReadUs / 1000).toFixed(2)],
      ['token, us', ([, { law }]) => law.perTokenUs.toFixed(1)],
      ['sequence, us', ([, { law }]) => law.perDecodeSequenceUs.toFixed(1)],
      ['context, ns', ([, { law }]) => contextCost(law)],
      ['quality', ([, { quality }]) => quality.toFixed(3)],
      ['status', ([, { status }]) => status],
    ]),
  ].join('\n');
}

function contextCost({ perContextTokenNs, manySequences: many }: IterationLaw): string {
  const few = perContextTokenNs.toFixed(1);
  return many === undefined ? few : `${few}, ${many.perContextTokenNs.toFixed(1)} above ${many.above}`;
}

/** The command that makes an estimated profile again; `undefined` where none does. */
function estimateCommand({ status, gpu, model, weights }: EngineProfile): string | undefined {
  const knownGpu = GPUS.find(({ name }) => name === gpu.name);
  const knownModel = MODELS.find(({ name }) => name === model.name);
  if (status !== 'estimated' || knownGpu === undefined || knownModel === undefined) return undefined;
  const made = estimatedProfile(knownGpu, knownModel, gpu.count);
  const line = gpu.count === 1 ? '' : ` --deployment "-tp ${gpu.count}"`;
  const command = `servegym profile make --gpu ${knownGpu.id} --model ${knownModel.id}${line}`;
  return isDeepStrictEqual(made.weights, weights) ? command : undefined;
}

/** Below this share the measurements say too little about a coefficient to call it measured. */
const LEAST_DETERMINED = 0.3;

export const staticBatchForm: Required<Form<StaticBatchCalibration>> = {
  json({ profile, rows, overflowing, determined }) {
    const compared = ({ batch, inputTokens, outputTokens, latencyS, predictedS }: ComparedRow) => ({
      ...{ batch, input_tokens: inputTokens, output_tokens: outputTokens },
      ...{ measured_s: latencyS, predicted_s: predictedS },
      error_percent: signedError(predictedS, latencyS),
    });
    return {
      profile,
      determined,
      rows: rows.map((row) => {
        const left_out_error_percent = signedError(row.heldOutS, row.latencyS);
        return { ...compared(row), left_out_predicted_s: row.heldOutS, left_out_error_percent };
      }),
      overflowing: overflowing.map(compared),
    };
  },
  text({ profile, rows, overflowing, determined }) {
    const label = ({ batch, inputTokens, outputTokens }: ComparedRow) =>
      `${batch} x (${inputTokens} + ${outputTokens})`;
    return [
      `${profile.name}: ${profile.fit!.rows} rows fitted`,
      '',
      ...coefficientRows(profile, determined),
      '',
      ...table(rows, [
        ['batch x (in + out)', label],
        ['measured, s', ({ latencyS }) => latencyS.toFixed(2)],
        ['predicted, s', ({ predictedS }) => predictedS.toFixed(2)],
        ['error', ({ predictedS, latencyS }) => percent(predictedS, latencyS)],
        ['left out', ({ heldOutS, latencyS }) => percent(heldOutS, latencyS)],
      ]),
      '',
      ...errorLines(profile, '', 'each row by a fit without it'),
      ...overflowing.map(
        (row) =>
          `KV pool   ${label(row)} does not fit at once: measured ${row.latencyS.toFixed(2)} s, predicted ${row.predictedS.toFixed(2)} s, ${percent(row.predictedS, row.latencyS)} (not fitted)`,
      ),
    ].join('\n');
  },
};

type ComparedRow = StaticBatchRow & { readonly predictedS: number };

export const benchForm = {
  json: ({ profile, folds, failed, determined, gaps, warnings }: BenchCalibration) => ({
    profile,
    determined,
    gaps,
    warnings,
    failed_requests: failed,
    folds: folds.map(({ name, requests, measuredMs, errors, leftOut, slowness }) => ({
      ...{ name, requests, measured_ms: measuredMs, error_percent: errors },
      ...{ left_out_error_percent: leftOut, slowness },
    })),
  }),
  text({ profile, weights, folds, failed, determined, gaps, warnings }: BenchCalibration): string {
    const jitter = profile.requestOverheadJitter;
    const share = `${Math.round(100 * determined.requestOverheadMs!)} %`;
    const overhead = ['requestOverheadMs', profile.requestOverheadMs.toPrecision(4), share];
    const rest = failed === 0 ? '' : `, ${failed} without an answer left out`;
    return [
      `${profile.name}: ${counted(profile.fit!.rows, 'request')} fitted${rest}`,
      '',
      ...coefficientRows(profile, determined, weights, [overhead]),
      ...(jitter === undefined
        ? []
        : [`${Math.round(100 * jitter)} % of the overhead vary from request to request.`]),
      ...gaps,
      ...warnings.map((warning) => `warning: ${warning}`),
      '',
      ...table(folds, [
        ['mean of', ({ name }) => name],
        ['requests', ({ requests }) => String(requests)],
        ['TTFT, ms', ({ measuredMs }) => measuredMs.ttft.toFixed(1)],
        ['TPOT, ms', ({ measuredMs }) => measuredMs.tpot.toFixed(2)],
        ['latency, ms', ({ measuredMs }) => measuredMs.e2e.toFixed(0)],
        ['errors', ({ errors }) => signedPercent(errors.ttft)],
        ['', ({ errors }) => signedPercent(errors.tpot)],
        ['', ({ errors }) => signedPercent(errors.e2e)],
        ['left out', ({ leftOut }) => signedPercent(leftOut.ttft)],
        ['', ({ leftOut }) => signedPercent(leftOut.tpot)],
        ['', ({ leftOut }) => signedPercent(leftOut.e2e)],
      ]),
      '',
      ...errorLines(profile, ', of the mean latency', 'each line by a fit without it'),
    ].join('\n');
  },
};

/** Errors of a fit, and those of what it was not fitted to. */
function errorLines({ fit }: EngineProfile, what: string, leftOut: string): string[] {
  const { meanErrorPercent, worstErrorPercent, heldOutMeanErrorPercent, heldOutWorstErrorPercent } = fit!;
  const both = (mean: number, worst: number) => `${mean.toFixed(2)} % mean, ${worst.toFixed(2)} % worst`;
  return [
    `error     ${both(meanErrorPercent, worstErrorPercent)}${what}`,
    `left out  ${both(heldOutMeanErrorPercent, heldOutWorstErrorPercent)} (${leftOut})`,
  ];
}

function coefficientRows(
  profile: EngineProfile,
  determined: StaticBatchCalibration['determined'],
  weights: WeightPrecision = 'FP16',
  more: readonly (readonly string[])[] = [],
): string[] {
  const { law } = profile.weights[weights]!;
  const names = coefficientsOf(law);
  const open = names.filter((name) => (determined[name] ?? 0) < LEAST_DETERMINED);
  return [
    ...table(
      names,
      [
        ['coefficient', (name) => name],
        ['value', (name) => coefficientOf(law, name)!.toPrecision(5)],
        ['determined', (name) => `${Math.round(100 * (determined[name] ?? 0))} %`],
      ],
      more,
    ),
    ...(open.length === 0
      ? []
      : [`These measurements hardly determine ${open.join(', ')}: near what the fit started from.`]),
  ];
}

const signedError = (predicted: number, measured: number) =>
  Math.sign(predicted - measured) * errorPercent(predicted, measured);
const percent = (predicted: number, measured: number) => signedPercent(signedError(predicted, measured));
const signedPercent = (error: number) => `${error < 0 ? '-' : '+'}${Math.abs(error).toFixed(1)} %`;
