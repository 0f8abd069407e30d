import { existsSync } from 'node:fs';
import {
  blocksOf,
  type Candidate,
  compareDeployments,
  type Deployed,
  diffStatus,
  EXTRA_KNOBS,
  fewestEngines,
  KNOB_NAMES,
  type KnobName,
  type Launch,
  readLaunch,
  type SloTerm,
  vllmDefaults,
} from '@servegym/operators';
import { diffJson, diffMarkdown, diffReport } from '@servegym/operators/report';
import { listProfiles } from '@servegym/profiles';
import {
  type EngineProfile,
  ROUTER_POLICIES,
  type RouterPolicy,
  scaleRate,
  type Trace,
  takeRequests,
} from '@servegym/simulator';
import { Command } from 'commander';
import { profilesOnGpu } from '../arguments/gpu-profiles.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { addPriceOptions, type PriceOptions, withPrices } from '../arguments/price-options.ts';
import { readInputFile, readProfile } from '../arguments/read-input-file.ts';
import { withSchedulerOptions } from '../arguments/scheduler-options.ts';
import { refuseClassBounds, sloOption } from '../arguments/slo-option.ts';
import {
  addTraceOptions,
  readingLine,
  readTraceArgument,
  type TraceArguments,
} from '../arguments/trace-arguments.ts';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface DiffOptions extends TraceArguments, PriceOptions {
  readonly baseline: string;
  readonly candidate: string;
  readonly trace: string;
  readonly slo: SloTerm[];
  readonly gpu?: string;
  readonly profile?: string;
  readonly rateScale: number;
  readonly requests: number;
  readonly seed: number;
  readonly markdown?: string;
  readonly json: boolean;
}

/** Settings that are off at 0. */
const MAY_BE_OFF: readonly KnobName[] = ['speculation', ...EXTRA_KNOBS];

/** `servegym diff`: whether a change of settings breaks an SLO. */
export function diffCommand(): Command {
  const command = new Command('diff')
    .description('compare two ways to serve a trace, and say whether the second breaks an SLO')
    .requiredOption(
      '--baseline <file|line>',
      'how it is served now: a `vllm serve` or SGLang line, or a file with one, a Kubernetes manifest, Helm values, or JSON of `plan`',
    )
    .requiredOption('--candidate <file|line>', 'the same after the change')
    .requiredOption(
      '--trace <file>',
      'your traffic: CSV, JSON lines, Parquet or a result of a load generator',
    )
    .addOption(sloOption('ttft_p99=1s,tpot_p99=50ms'))
    .option('--gpu <name>', 'the GPU that both are on, a part of its name, for instance h100')
    .option(
      '--profile <name|file.json>',
      'the engine profile of both, instead of one for the model and --gpu',
    )
    .option('--rate-scale <factor>', 'at this many times the traffic', numberAbove(0), 1)
    .option(
      '--requests <n>',
      'most requests of the trace, from its start',
      wholeNumber(200, 1_000_000),
      20_000,
    )
    .option('--seed <n>', 'seed of draft tokens and of the bootstrap', wholeNumber(0, 2 ** 31), 0)
    .option('--markdown <file.md>', 'write the table as Markdown, for a comment on a pull request')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Exit status: 0 no bound of the SLO breaks; 1 the candidate breaks one, or makes a broken one worse; 2 too close to tell, or
the input is wrong.

Examples:
  servegym diff --baseline 'vllm serve Qwen/Qwen3-32B -tp 2' --candidate 'vllm serve Qwen/Qwen3-32B -tp 2 --max-num-seqs 512' --gpu h100 --trace log.csv
  servegym diff --baseline main/deployment.yaml --candidate deployment.yaml --gpu h100 --trace log.parquet --slo ttft_p99=500ms`,
    )
    .action(diff);
  return addTraceOptions(addPriceOptions(command));
}

async function diff(options: DiffOptions): Promise<void> {
  const { json, markdown, slo, seed } = options;
  refuseClassBounds(slo, 'a trace has');
  await requireWritable(markdown);
  const baseline = await deployed('--baseline', options.baseline, options);
  const candidate = await deployed('--candidate', options.candidate, options);
  const { trace, reading } = await readTraceArgument(options.trace, options);
  if (!json) console.error(readingLine(options.trace, reading, trace.arrivalMs.length));
  const taken = scaleRate(takeRequests(trace, options.requests), options.rateScale);
  const [before, after] = [baseline, candidate].map((each) => withTooLong(each, taken));
  const result = compareDeployments(before, after, blocksOf(taken), slo, seed);
  printResult(
    json,
    () => diffJson(result),
    () => diffReport(result),
  );
  if (markdown !== undefined) await writeOutputFile(markdown, [`${diffMarkdown(result)}\n`]);
  process.exitCode = diffStatus(result);
}

/** With the requests that the engine refuses for their length among what is not simulated. */
function withTooLong({ maxModelLen, ...deployed }: ReadDeployment, trace: Trace): Deployed {
  if (maxModelLen === undefined) return deployed;
  const { inputTokens, outputTokens } = trace;
  let refused = 0;
  for (let i = 0; i < inputTokens.length; i++) if (inputTokens[i] + outputTokens[i] > maxModelLen) refused++;
  if (refused === 0) return deployed;
  const note = `--max-model-len ${maxModelLen}: ${refused.toLocaleString('en-US')} requests are longer, and served all the same`;
  return { ...deployed, notSimulated: [...deployed.notSimulated, note] };
}

/** A deployment with the longest request that its command line allows. */
type ReadDeployment = Deployed & { readonly maxModelLen?: number | undefined };

async function deployed(option: string, text: string, options: DiffOptions): Promise<ReadDeployment> {
  const isFile = existsSync(text);
  const name = isFile ? text : option.slice(2);
  if (!isFile && !/\s/.test(text.trim())) throw new InputError(`${option}: there is no file ${text}`);
  const content = isFile ? await readInputFile(text) : text;
  const found = content.trimStart().startsWith('{')
    ? await fromJson(content, name, options)
    : fromLaunch(readLaunch(content, name), name, await own(options), options);
  const { profiles } = await withPrices(
    [{ profile: found.profile, isShipped: options.profile?.endsWith('.json') !== true }],
    options,
  );
  return { ...found, profile: profiles[0] };
}

async function own({ profile }: DiffOptions): Promise<EngineProfile | undefined> {
  return profile === undefined ? undefined : readProfile(profile);
}

/** JSON with `profile`, `settings` and `engines`, as a plan of `plan --json` has them, or all of that command's. */
async function fromJson(text: string, name: string, options: DiffOptions): Promise<ReadDeployment> {
  let value: { plans?: unknown[] } & Record<string, unknown>;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InputError(`${name}: no JSON: ${(error as Error).message}`);
  }
  const plan = (value.plans?.[0] ?? value) as Record<string, unknown>;
  const { profile: named, settings, engines, router, pools } = plan;
  if (typeof named !== 'string' || typeof settings !== 'object' || settings === null) {
    throw new InputError(
      `${name}: expected {"profile": "...", "settings": {"max_num_seqs": ...}, "engines": 2}`,
    );
  }
  if (Array.isArray(pools) && pools.some((pool) => (pool as { profile?: unknown }).profile !== named))
    throw new InputError(`${name}: expected engines of one profile, as diff compares no mixed fleets`);
  if (router !== undefined && !ROUTER_POLICIES.includes(router as RouterPolicy))
    throw new InputError(
      `${name}: router: expected one of ${ROUTER_POLICIES.join(', ')}, got ${JSON.stringify(router)}`,
    );
  const profile = (await own(options)) ?? (await readProfile(named));
  const candidate: Record<string, unknown> = { ...vllmDefaults(profile) };
  for (const [key, given] of Object.entries(settings)) {
    const knob = KNOB_NAMES[key as keyof typeof KNOB_NAMES];
    const isValid =
      typeof given !== 'number' ||
      (given > 0 && (knob === 'kvBudgetFraction' ? given <= 1 : Number.isInteger(given))) ||
      (given === 0 && MAY_BE_OFF.includes(key as KnobName));
    const isOfKind =
      knob === 'split' && given !== false
        ? typeof given === 'string' && /^[1-9]\d?:[1-9]\d?$/.test(given)
        : knob !== undefined && typeof given === typeof candidate[knob];
    if (!isOfKind || !isValid) {
      throw new InputError(
        `${name}: settings.${key}: expected one of ${Object.keys(KNOB_NAMES).join(', ')} with a value of its kind, got ${JSON.stringify(given)}`,
      );
    }
    candidate[knob] = given;
  }
  if (engines !== undefined && !(Number.isInteger(engines) && (engines as number) > 0))
    throw new InputError(`${name}: engines: expected a whole number above 0, got ${JSON.stringify(engines)}`);
  return checked({
    ...{ name, profile, settings: candidate as unknown as Candidate },
    ...{ engines: (engines as number | undefined) ?? 1, notSimulated: [] },
    ...(router !== undefined && { router: router as RouterPolicy }),
  });
}

function fromLaunch(
  launch: Launch,
  name: string,
  own: EngineProfile | undefined,
  { gpu }: DiffOptions,
): ReadDeployment {
  const { settings, replicas } = launch;
  const found = own === undefined ? profileFor(launch, gpu) : { profile: own, engines: 1, notSimulated: [] };
  const base = found.profile;
  const { memoryShare } = settings;
  const profile = withSchedulerOptions(
    memoryShare === undefined || launch.engine === 'SGLang'
      ? base
      : { ...base, memory: { ...base.memory, utilization: memoryShare } },
    { ...settings, schedulerReserveFullIsl: settings.wholePromptFits },
  );
  const defaults = vllmDefaults(profile);
  const notSimulated = [...launch.notSimulated, ...found.notSimulated];
  if (launch.engine === 'SGLang')
    notSimulated.push('SGLang’s scheduler: vLLM’s is simulated with its settings');
  if (launch.engine === 'SGLang' && memoryShare !== undefined)
    notSimulated.push(`--mem-fraction-static ${memoryShare}`);
  return checked({
    ...{ name, profile, engines: replicas * found.engines, notSimulated, maxModelLen: settings.maxModelLen },
    settings: {
      ...defaults,
      maxNumSeqs: settings.maxNumSeqs ?? defaults.maxNumSeqs,
      maxNumBatchedTokens:
        settings.maxNumBatchedTokens ?? Math.max(defaults.maxNumBatchedTokens, settings.maxNumSeqs ?? 0),
      weights: settings.weights ?? defaults.weights,
      speculationDepth: settings.speculationDepth ?? 0,
      prefixCaching: settings.prefixCaching ?? true,
      priority: settings.priority ?? false,
    },
  });
}

/** @throws InputError when the profile lacks the weights or a draft */
function checked(deployed: ReadDeployment): ReadDeployment {
  const { name, profile, settings, engines } = deployed;
  if (profile.weights[settings.weights] === undefined)
    throw new InputError(
      `${name}: ${profile.name} has no ${settings.weights} weights; it has ${Object.keys(profile.weights).join(', ')}`,
    );
  if (settings.speculationDepth > 0 && profile.speculation === null)
    throw new InputError(`${name}: ${profile.name} has no draft`);
  const group = fewestEngines(settings);
  if (engines % group !== 0)
    throw new InputError(
      `${name}: engines: expected a multiple of ${group}, as their split is ${settings.split}, got ${engines}`,
    );
  return deployed;
}

/** The shipped profile of a launch's model, GPU and parallelism. @throws InputError with those there are */
function profileFor(
  { model, checkpoint, settings, source }: Launch,
  gpu: string | undefined,
): Pick<Deployed, 'profile' | 'engines' | 'notSimulated'> {
  if (model === null)
    throw new InputError(
      `${source}: the model ${checkpoint} is not known; name a --profile (\`servegym calibrate\` makes one)`,
    );
  const ofModel = listProfiles().filter((profile) => profile.model.name === model);
  const onGpu = gpu === undefined ? ofModel : profilesOnGpu(ofModel, gpu);
  const { tensorParallel: tensor = 1, dataParallel: data = 1, pipelineParallel: pipeline = 1 } = settings;
  const { expertParallel: expert = false, fp8KvCache = false } = settings;
  const divided = (profile: EngineProfile, replicas: number) =>
    profile.gpu.count === tensor * pipeline * replicas &&
    (profile.parallel?.data ?? 1) === replicas &&
    (profile.parallel?.pipeline ?? 1) === pipeline;
  const shared = onGpu.filter((profile) => divided(profile, data));
  // Replicas of a dense model share nothing: they are engines.
  const fitting = shared.length > 0 ? shared : onGpu.filter((profile) => divided(profile, 1));
  const names = [...new Set(fitting.map((profile) => profile.gpu.name))];
  if (names.length !== 1) {
    const known = [...new Set(ofModel.map(({ gpu: { name, count } }) => `${name} x ${count}`))].sort();
    const wanted = `${tensor}${pipeline > 1 ? ` x ${pipeline} stages` : ''} ${gpu ?? 'GPUs'}`;
    throw new InputError(
      names.length === 0
        ? `${source}: no profile of ${model} on ${wanted}: there are ${known.join(', ')}`
        : `${source}: expected --gpu, one of ${names.sort().join(', ')}`,
    );
  }
  const hasExperts = (profile: EngineProfile) => (profile.parallel?.expert ?? 1) > 1;
  const fit = (profile: EngineProfile) =>
    2 * Number((profile.model.kvCache === 'FP8') === fp8KvCache) + Number(hasExperts(profile) === expert);
  const [profile] = fitting.sort((a, b) => fit(b) - fit(a));
  return {
    profile,
    engines: shared.length > 0 ? 1 : data,
    notSimulated: [
      ...(expert && tensor * data > 1 && !hasExperts(profile) ? ['--enable-expert-parallel'] : []),
      ...(fp8KvCache && profile.model.kvCache !== 'FP8' ? ['the FP8 KV cache: no profile has it'] : []),
    ],
  };
}
