import { isDeepStrictEqual } from 'node:util';
import { alignedRows } from '@servegym/operators/report';
import { estimatedProfile, GPUS, MODELS } from '@servegym/profiles';
import { type EngineProfile, type IterationLaw, kvPoolBlocks, type WeightVariant } from '@servegym/simulator';

/** Text of `profiles`: a line a profile. */
export function profilesTable(profiles: readonly EngineProfile[]): string {
  const rows = profiles.map((profile) => [
    profile.name,
    profile.status,
    Object.keys(profile.weights).join(' '),
    profile.speculation?.method ?? '-',
    ...(profile.fit === null
      ? ['-', '-', '-']
      : [
          String(profile.fit.rows),
          `${profile.fit.meanErrorPercent.toFixed(1)} / ${profile.fit.worstErrorPercent.toFixed(1)} %`,
          `${profile.fit.heldOutMeanErrorPercent.toFixed(1)} / ${profile.fit.heldOutWorstErrorPercent.toFixed(1)} %`,
        ]),
  ]);
  if (rows.length === 0) {
    return 'No shipped profile is of these. `servegym profile make` makes one of any GPU and model.';
  }
  const header = ['profile', 'status', 'weights', 'draft', 'rows', 'fit error', 'left out'];
  return [
    ...alignedRows([header, ...rows]),
    '',
    `${rows.length} profiles. Errors are mean / worst over the measured latencies; left out: each row predicted by a fit without it.`,
  ].join('\n');
}

/** Text of `profiles NAME`. */
export function profileSheet(profile: EngineProfile): string {
  const { gpu, model, engine, fit, validity, speculation } = profile;
  const facts: [string, string][] = [
    ['GPU', `${gpu.count} x ${gpu.name}, ${gpu.memoryGiB} GiB, ${gpu.usdPerHour} USD/h each`],
    [
      'model',
      `${model.name}, ${model.kvBytesPerToken / 1024} KiB of KV a token${model.kvCache === 'FP8' ? ' in FP8' : ''}`,
    ],
    ['engine', `${engine.name} (version: ${engine.version})`],
    ['status', profile.status],
    ['source', profile.source],
    ['valid for', `batch ${range(validity.batch)}, context ${range(validity.contextTokens)} tokens`],
  ];
  if (fit !== null) {
    facts.push(
      ['fit', `${fit.rows} rows, error ${fit.meanErrorPercent} % mean, ${fit.worstErrorPercent} % worst`],
      ['left out', `error ${fit.heldOutMeanErrorPercent} % mean, ${fit.heldOutWorstErrorPercent} % worst`],
      ['made by', currentCommand(fit.command)],
    );
  }
  const estimate = estimateCommand(profile);
  if (estimate !== undefined) facts.push(['made by', estimate]);
  if (speculation !== null) {
    facts.push([
      'speculation',
      `${speculation.method}, acceptance on ${Object.keys(speculation.survival).join(', ')}`,
    ]);
  }
  const variants = Object.entries(profile.weights).map(([precision, variant]) =>
    variantRow(profile, precision, variant),
  );
  return [
    profile.name,
    '',
    ...facts.map(([name, value]) => `${name.padEnd(14)} ${value}`),
    '',
    ...alignedRows([
      [
        'weights',
        'GiB a GPU',
        'KV tokens',
        'base, ms',
        'weights, ms',
        'token, us',
        'sequence, us',
        'context, ns',
        'quality',
        'status',
      ],
      ...variants,
    ]),
  ].join('\n');
}

/** Flags before the sources in commands of profiles that were made before `profile make`. */
const FORMER = ['--static-batch', '--kernels', '--tables', '--bench', '--server', '--estimate'];

/** The command that makes a profile, as it is typed now: profiles keep that of their time. */
export function currentCommand(line: string): string {
  const words = [...line.matchAll(/"[^"]*"|\S+/g)].map(([word]) => word);
  if (words[1] !== 'calibrate') return line;
  const now = words.slice(2).flatMap((word, i, all) => {
    if (word === '--gpus') return [`--deployment "-tp ${all[i + 1]}"`];
    return all[i - 1] === '--gpus' || FORMER.includes(word) ? [] : [word];
  });
  return ['servegym profile make', ...now].join(' ');
}

/** The command that makes an estimated profile again; `undefined` where none does. */
function estimateCommand({ status, gpu, model, weights }: EngineProfile): string | undefined {
  const knownGpu = GPUS.find(({ name }) => name === gpu.name);
  const knownModel = MODELS.find(({ name }) => name === model.name);
  if (status !== 'estimated' || knownGpu === undefined || knownModel === undefined) return undefined;
  if (!isDeepStrictEqual(estimatedProfile(knownGpu, knownModel, gpu.count).weights, weights))
    return undefined;
  return `servegym profile make --gpu ${knownGpu.id} --model ${knownModel.id}${gpu.count === 1 ? '' : ` --deployment "-tp ${gpu.count}"`}`;
}

function variantRow(
  profile: EngineProfile,
  precision: string,
  { law, quality, status, weightGiB }: WeightVariant,
) {
  const blocks = kvPoolBlocks(profile, precision as keyof EngineProfile['weights'], false, 1);
  return [
    precision,
    weightGiB.toFixed(2),
    (blocks * profile.memory.blockTokens).toLocaleString('en-US'),
    (law.baseUs / 1000).toFixed(2),
    (law.weightReadUs / 1000).toFixed(2),
    law.perTokenUs.toFixed(1),
    law.perDecodeSequenceUs.toFixed(1),
    contextCost(law),
    quality.toFixed(3),
    status,
  ];
}

function contextCost({ perContextTokenNs, manySequences: many }: IterationLaw): string {
  const few = perContextTokenNs.toFixed(1);
  return many === undefined ? few : `${few}, ${many.perContextTokenNs.toFixed(1)} above ${many.above}`;
}

function range([low, high]: readonly [number, number]): string {
  return `${low} to ${high.toLocaleString('en-US')}`;
}
