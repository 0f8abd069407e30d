import { knownCheckpoint, type ServedModel } from '@servegym/profiles';
import { parseAllDocuments } from 'yaml';
import { TuningError } from '../search/slo.ts';
import { type EngineName, engineFlag, type LaunchSettings } from './engine-flags.ts';
import flagLists from './flag-lists.json' with { type: 'json' };

/** An engine as somebody starts it. Settings that are not named are absent. */
export interface Launch {
  /** Place that it was read at. */
  readonly source: string;
  readonly engine: EngineName;
  /** Version of the engine, behind `vllm@` or `sglang.launch_server@`. */
  readonly version?: string;
  /** Checkpoint: the id of Hugging Face, or a folder. */
  readonly checkpoint: string;
  /** `null` where the checkpoint is not known. */
  readonly model: ServedModel | null;
  readonly settings: LaunchSettings;
  /** Engines that are started so. */
  readonly replicas: number;
  /** Flags that are not known, or that change what is not simulated: told, never ignored in silence. */
  readonly notSimulated: readonly string[];
}

/** Ends a command in a shell line. */
const OPERATOR = /^(?:&&?|\|\|?|;|[0-9]?>>?(?:&[0-9])?|<)$/;

/** Words of the first command of a shell line: quotes hold together, also inside a word. What follows an operator is left out. */
export function shellWords(line: string): string[] {
  const words: string[] = [];
  const text = line.replace(/\\\r?\n/g, ' ');
  for (const [word] of text.matchAll(
    /(?<!\S)[0-9]?>>?(?:&[0-9])?|(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\;&|<>])+|&&|\|\||[;&|<>]|\S/gs,
  )) {
    if (OPERATOR.test(word) || word.startsWith('#')) {
      if (startsEngine(words)) break;
      words.length = 0;
      continue;
    }
    words.push(
      word.replace(
        /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs,
        (_, single, double, escaped) => single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped,
      ),
    );
  }
  return words;
}

const VLLM = /^(?:.*\/)?vllm(?:@(.*))?$/;
const VLLM_MODULE = 'vllm.entrypoints.openai.api_server';
const SGLANG_MODULE = /^sglang\.launch_server(?:@(.*))?$/;

/** Whether words start an engine: `vllm serve ...`, or a Python module. */
function startsEngine(words: readonly string[]): boolean {
  return (
    words.some((word, i) => VLLM.test(word) && words[i + 1] === 'serve') ||
    words.includes(VLLM_MODULE) ||
    words.some((word) => SGLANG_MODULE.test(word))
  );
}

/**
 * Reads the words of a command line.
 * @throws TuningError `INVALID_LAUNCH`
 */
function parseLaunch(words: readonly string[], source: string, replicas = 1): Launch {
  const serve = words.findIndex((word, i) => VLLM.test(word) && words[i + 1] === 'serve');
  const sglang = words.findIndex((word) => SGLANG_MODULE.test(word));
  const module = Math.max(words.indexOf(VLLM_MODULE), sglang);
  if (serve === -1 && module === -1) {
    throw invalid(
      source,
      'a line with `vllm serve`, `python -m vllm.entrypoints.openai.api_server` or `python -m sglang.launch_server`',
    );
  }
  const version = (VLLM.exec(words[serve] ?? '') ?? SGLANG_MODULE.exec(words[sglang] ?? ''))?.[1];
  const engine = sglang === -1 ? 'vLLM' : 'SGLang';
  const rest = words.slice(serve === -1 ? module + 1 : serve + 2);
  let checkpoint: string | undefined;
  const settings: LaunchSettings = {};
  const notSimulated: string[] = [];
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at];
    if (!word.startsWith('-')) {
      if (checkpoint === undefined && engine === 'vLLM' && module === -1) checkpoint = word;
      else notSimulated.push(word);
      continue;
    }
    const [, given, joined] = /^([^=]*)(?:=(.*))?$/s.exec(word)!;
    // vLLM takes underscores for hyphens.
    const name = given.replace(/_/g, '-');
    const flag = engineFlag(engine, name);
    const takesValue = flag === undefined ? isValue(rest[at + 1]) : !flag.isAlone;
    let value = joined ?? (takesValue ? rest[++at] : undefined);
    while (flag?.takesMany && rest[at + 1] !== undefined && !rest[at + 1].startsWith('-'))
      value += `\n${rest[++at]}`;
    const shown = value === undefined ? given : `${given} ${value}`;
    if (takesValue && value === undefined) throw invalid(source, `a value after ${given}`);
    if (name === '--model' || name === '--model-path') {
      checkpoint = value;
    } else if (flag === undefined) {
      notSimulated.push(shown);
    } else if (flag.read !== undefined) {
      const problem = flag.read(settings, value ?? '');
      if (problem === 'not simulated')
        notSimulated.push(flag.because === undefined ? shown : `${shown}: ${flag.because}`);
      else if (typeof problem === 'object') notSimulated.push(`${given}: ${problem.left.join(', ')}`);
      else if (problem !== undefined) throw invalid(source, `${given} to be ${problem}`, value);
    }
  }
  if (checkpoint === undefined) throw invalid(source, 'the name of a model');
  const { maxNumSeqs, maxNumBatchedTokens } = settings;
  if (
    engine === 'vLLM' &&
    maxNumSeqs !== undefined &&
    maxNumBatchedTokens !== undefined &&
    maxNumBatchedTokens < maxNumSeqs
  ) {
    throw invalid(
      source,
      `--max-num-batched-tokens of at least --max-num-seqs ${maxNumSeqs}, as vLLM does`,
      String(maxNumBatchedTokens),
    );
  }
  if (settings.attentionParallel) divideAttention(settings, source);
  const known = knownCheckpoint(checkpoint);
  if (known !== undefined) settings.weights ??= known.precision;
  return {
    ...{ source, engine, version, checkpoint, model: known?.model ?? null, settings, replicas },
    notSimulated,
  };
}

/** SGLang counts the copies of the attention among the GPUs of the tensor-parallel group. */
function divideAttention(settings: LaunchSettings, source: string): void {
  const { tensorParallel: gpus = 1, dataParallel: copies = 1 } = settings;
  if (gpus % copies !== 0) {
    throw invalid(
      source,
      `--tp-size to be a multiple of --dp-size ${copies}, as --enable-dp-attention divides it`,
      String(gpus),
    );
  }
  settings.tensorParallel = gpus / copies;
}

function isValue(word: string | undefined): boolean {
  return word !== undefined && (!word.startsWith('-') || /^-\d/.test(word));
}

function invalid(source: string, expected: string, got?: string): TuningError {
  return invalidLaunch(source, `expected ${expected}${got === undefined ? '' : `, got \`${got}\``}`);
}

export function invalidLaunch(source: string, problem: string): TuningError {
  return new TuningError('INVALID_LAUNCH', `${source}: ${problem}`);
}

/**
 * Reads how an engine is started: a command line, a shell script with one, a Kubernetes manifest, or Helm values of vLLM's
 * production stack or of llm-d's model service.
 * @param source name of the file, or `the command line`
 * @throws TuningError `INVALID_LAUNCH`
 */
export function readLaunch(text: string, source: string): Launch {
  const line = commandLine(text);
  if (line !== undefined) return parseLaunch(shellWords(line), source);
  let documents: unknown[] = [];
  try {
    documents = parseAllDocuments(text).map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS() as unknown;
    });
  } catch (error) {
    throw invalidLaunch(source, `neither a command line nor YAML: ${(error as Error).message}`);
  }
  const found = documents.flatMap((document) => launchesIn(document, source));
  if (found.length === 1) return found[0];
  throw invalidLaunch(
    source,
    found.length === 0
      ? `expected a \`vllm serve\` or SGLang line, a Kubernetes manifest with one in a container, or Helm values of the production stack or llm-d; found none`
      : `expected one engine, found ${found.length}: ${found.map(({ checkpoint }) => checkpoint).join(', ')}`,
  );
}

/** The line of a text that starts an engine, with the lines that a backslash joins to it. */
function commandLine(text: string): string | undefined {
  // A manifest has lines of YAML around its words.
  if (/^\s*(apiVersion|kind|servingEngineSpec|modelArtifacts)\s*:/m.test(text)) return undefined;
  const joined = text.replace(/\\\r?\n/g, ' ');
  return joined
    .split(/\r?\n/)
    .find((line) => !line.trimStart().startsWith('#') && startsEngine(shellWords(line)));
}

type Fields = Readonly<Record<string, unknown>>;

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function texts(value: unknown): string[] {
  return list(value).map(String);
}

function launchesIn(document: unknown, source: string): Launch[] {
  const root = fields(document);
  const stack = list(fields(root.servingEngineSpec).modelSpec);
  if (stack.length > 0) return stack.map((spec) => productionStack(fields(spec), source));
  if (root.modelArtifacts !== undefined) return [modelService(root, source)];
  const { template, replicas } = fields(root.spec);
  const pod = template === undefined ? fields(root.spec) : fields(fields(template).spec);
  return list(pod.containers).flatMap((container) => {
    const words = containerWords(fields(container));
    if (!startsEngine(words)) return [];
    const variables = list(fields(container).env).map((each) => String(fields(each).name));
    const launch = parseLaunch(words, source, count(replicas, source));
    return [
      alsoNotSimulated(
        launch,
        variables.filter((name) => /^(VLLM|SGLANG|SGL)_/.test(name)),
      ),
    ];
  });
}

function alsoNotSimulated(launch: Launch, left: readonly string[]): Launch {
  return { ...launch, notSimulated: [...launch.notSimulated, ...left] };
}

/**
 * Command and arguments of a container, with the values of its variables in the place of `$(NAME)`; the image of vLLM
 * starts `vllm serve` by itself.
 */
function containerWords({ command, args, image, env }: Fields): string[] {
  const values = new Map(list(env).map((each) => [String(fields(each).name), fields(each).value]));
  const words = [...texts(command), ...texts(args)].map((word) =>
    word.replace(/\$\((\w+)\)/g, (whole, name) =>
      values.get(name) === undefined ? whole : String(values.get(name)),
    ),
  );
  const shell = words.find((word) => startsEngine(shellWords(word)));
  if (shell !== undefined) return shellWords(shell);
  if (startsEngine(words)) return words;
  if (typeof image !== 'string' || !/vllm-openai/.test(image) || words.length === 0) return words;
  return ['vllm', 'serve', ...words];
}

/** Replicas; 1 where they are left out. */
function count(replicas: unknown, source: string): number {
  if (replicas === undefined || replicas === null) return 1;
  if (Number.isInteger(replicas) && (replicas as number) > 0) return replicas as number;
  throw invalidLaunch(
    source,
    `expected replicas to be a whole number above 0, got ${JSON.stringify(replicas)}`,
  );
}

/** Keys of `vllmConfig` that are named as vLLM's flags are. */
const STACK_VALUES =
  'tensorParallelSize maxNumSeqs maxNumBatchedTokens gpuMemoryUtilization maxModelLen dtype'.split(' ');

/** `servingEngineSpec.modelSpec[]` of vLLM's production stack. */
function productionStack(spec: Fields, source: string): Launch {
  const { modelURL, replicaCount, vllmConfig } = spec;
  const config = fields(vllmConfig);
  const flagOf = (key: string) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const words = STACK_VALUES.flatMap((key) =>
    config[key] === undefined ? [] : [flagOf(key), String(config[key])],
  );
  if (config.enablePrefixCaching !== undefined)
    words.push(`--${config.enablePrefixCaching ? '' : 'no-'}enable-prefix-caching`);
  if (config.enableChunkedPrefill === false) words.push('--no-enable-chunked-prefill');
  const read = [...STACK_VALUES, 'enablePrefixCaching', 'enableChunkedPrefill', 'extraArgs'];
  const left = [
    ...Object.keys(config).flatMap((key) => (read.includes(key) ? [] : [`vllmConfig.${key}`])),
    ...Object.keys(spec).filter((key) => !flagLists.productionStackKeys.includes(key)),
  ];
  const checkpoint = modelURL === undefined ? [] : [String(modelURL)];
  const launch = parseLaunch(
    ['vllm', 'serve', ...checkpoint, ...words, ...texts(config.extraArgs)],
    source,
    count(replicaCount, source),
  );
  return alsoNotSimulated(launch, left);
}

/** Values of llm-d's model service: `modelArtifacts` and `decode`. */
function modelService({ modelArtifacts, decode, prefill }: Fields, source: string): Launch {
  const { uri, name } = fields(modelArtifacts);
  const { replicas, parallelism, containers } = fields(decode);
  const { tensor, data } = fields(parallelism);
  const container = fields(list(containers)[0]);
  const own = containerWords({ command: container.command, args: container.args });
  const checkpoint = String(uri ?? name ?? '').replace(/^hf:\/\//, '');
  const words = startsEngine(own) ? own : ['vllm', 'serve', checkpoint, ...texts(container.args)];
  const launch = parseLaunch(
    [
      ...words,
      ...(tensor === undefined ? [] : ['--tensor-parallel-size', String(tensor)]),
      ...(data === undefined ? [] : ['--data-parallel-size', String(data)]),
    ],
    source,
    count(replicas, source),
  );
  const { replicas: pairs, create } = fields(prefill);
  return pairs === undefined || create === false
    ? launch
    : alsoNotSimulated(launch, [`prefill.replicas ${pairs}`]);
}
