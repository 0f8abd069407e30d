import { parseAllDocuments } from 'yaml';
import { TuningError } from '../tune/slo.ts';
import { type Launch, parseLaunch, shellWords, startsEngine } from './launch.ts';

/**
 * Reads how an engine is started: a command line, a shell script with one, a Kubernetes manifest, or Helm values of vLLM's
 * production stack or of llm-d's model service.
 * @param source name of the file, or `the command line`
 * @throws TuningError `INVALID_LAUNCH`
 */
export function readLaunch(text: string, source: string): Launch {
  const line = commandLine(text);
  if (line !== undefined) return parseLaunch(shellWords(line), source);
  const found: Launch[] = [];
  let documents: unknown[] = [];
  try {
    documents = parseAllDocuments(text).map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS() as unknown;
    });
  } catch (error) {
    throw new TuningError(
      'INVALID_LAUNCH',
      `${source}: neither a command line nor YAML: ${(error as Error).message}`,
    );
  }
  for (const document of documents) found.push(...launchesIn(document, source));
  if (found.length === 1) return found[0];
  throw new TuningError(
    'INVALID_LAUNCH',
    found.length === 0
      ? `${source}: expected a \`vllm serve\` or SGLang line, a Kubernetes manifest with one in a container, or Helm values of the production stack or llm-d; found none`
      : `${source}: expected one engine, found ${found.length}: ${found.map(({ checkpoint }) => checkpoint).join(', ')}`,
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
    return [withVariables(parseLaunch(words, source, count(replicas, source)), fields(container))];
  });
}

/** Variables of a container that change how an engine runs, among what is not simulated. */
function withVariables(launch: Launch, container: Fields): Launch {
  const names = list(container.env).map((each) => String(fields(each).name));
  const left = names.filter((name) => /^(VLLM|SGLANG|SGL)_/.test(name));
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
  throw new TuningError(
    'INVALID_LAUNCH',
    `${source}: expected replicas to be a whole number above 0, got ${JSON.stringify(replicas)}`,
  );
}

/** Keys of a model of the production stack that are read, or that change no schedule. */
const OF_NO_EFFECT = [
  ...[
    'name',
    'repository',
    'tag',
    'imagePullPolicy',
    'modelURL',
    'replicaCount',
    'vllmConfig',
    'annotations',
    'labels',
  ],
  ...[
    'requestCPU',
    'requestMemory',
    'requestGPU',
    'limitCPU',
    'limitMemory',
    'pvcStorage',
    'pvcAccessMode',
    'hf_token',
  ],
  ...[
    'pvcMatchLabels',
    'storageClass',
    'extraVolumes',
    'extraVolumeMounts',
    'shmSize',
    'podAnnotations',
    'chatTemplate',
  ],
];

/** `servingEngineSpec.modelSpec[]` of vLLM's production stack. */
function productionStack(spec: Fields, source: string): Launch {
  const { modelURL, replicaCount, vllmConfig } = spec;
  const config = fields(vllmConfig);
  const named: Readonly<Record<string, string>> = {
    tensorParallelSize: '--tensor-parallel-size',
    maxNumSeqs: '--max-num-seqs',
    maxNumBatchedTokens: '--max-num-batched-tokens',
    gpuMemoryUtilization: '--gpu-memory-utilization',
    maxModelLen: '--max-model-len',
    dtype: '--dtype',
  };
  const words = Object.entries(named).flatMap(([key, flag]) =>
    config[key] === undefined ? [] : [flag, String(config[key])],
  );
  if (config.enablePrefixCaching !== undefined) {
    words.push(config.enablePrefixCaching ? '--enable-prefix-caching' : '--no-enable-prefix-caching');
  }
  if (config.enableChunkedPrefill === false) words.push('--no-enable-chunked-prefill');
  const read = [...Object.keys(named), 'enablePrefixCaching', 'enableChunkedPrefill', 'extraArgs'];
  const left = [
    ...Object.keys(config).flatMap((key) => (read.includes(key) ? [] : [`vllmConfig.${key}`])),
    ...Object.keys(spec).filter((key) => !OF_NO_EFFECT.includes(key)),
  ];
  const launch = parseLaunch(
    [
      'vllm',
      'serve',
      ...(modelURL === undefined ? [] : [String(modelURL)]),
      ...words,
      ...texts(config.extraArgs),
    ],
    source,
    count(replicaCount, source),
  );
  return { ...launch, notSimulated: [...launch.notSimulated, ...left] };
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
  const pairs = fields(prefill).replicas;
  const splits = fields(prefill).replicas !== undefined && fields(prefill).create !== false;
  return splits
    ? { ...launch, notSimulated: [...launch.notSimulated, `prefill.replicas ${String(pairs)}`] }
    : launch;
}
