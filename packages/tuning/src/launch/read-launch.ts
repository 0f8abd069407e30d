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
    return startsEngine(words) ? [parseLaunch(words, source, count(replicas))] : [];
  });
}

/** Command and arguments of a container; the image of vLLM starts `vllm serve` by itself. */
function containerWords({ command, args, image }: Fields): string[] {
  const words = [...texts(command), ...texts(args)];
  const shell = words.find((word) => startsEngine(shellWords(word)));
  if (shell !== undefined) return shellWords(shell);
  if (startsEngine(words)) return words;
  if (typeof image !== 'string' || !/vllm-openai/.test(image) || words.length === 0) return words;
  return ['vllm', 'serve', ...words];
}

function count(replicas: unknown): number {
  return typeof replicas === 'number' && Number.isInteger(replicas) && replicas > 0 ? replicas : 1;
}

/** `servingEngineSpec.modelSpec[]` of vLLM's production stack. */
function productionStack({ modelURL, replicaCount, vllmConfig }: Fields, source: string): Launch {
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
  const read = [...Object.keys(named), 'enablePrefixCaching', 'enableChunkedPrefill', 'extraArgs', 'v1'];
  const left = Object.keys(config).filter((key) => !read.includes(key));
  const launch = parseLaunch(
    [
      'vllm',
      'serve',
      ...(modelURL === undefined ? [] : [String(modelURL)]),
      ...words,
      ...texts(config.extraArgs),
    ],
    source,
    count(replicaCount),
  );
  return { ...launch, notSimulated: [...launch.notSimulated, ...left.map((key) => `vllmConfig.${key}`)] };
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
    count(replicas),
  );
  const pairs = count(fields(prefill).replicas);
  const splits = fields(prefill).replicas !== undefined && fields(prefill).create !== false;
  return splits ? { ...launch, notSimulated: [...launch.notSimulated, `prefill.replicas ${pairs}`] } : launch;
}
