import { parseAllDocuments } from 'yaml';
import { invalidLaunch, type Launch, parseLaunch, shellWords, startsEngine } from './launch.ts';
import withoutEffect from './without-effect.json' with { type: 'json' };

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
    ...Object.keys(spec).filter((key) => !withoutEffect.productionStackKeys.includes(key)),
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
