import { MODELS } from '@servegym/profiles';
import type { WeightPrecision } from '@servegym/simulator';
import { TuningError } from '../tune/slo.ts';
import { type EngineName, engineFlag, type LaunchSettings } from './engine-flags.ts';

/** An engine as somebody starts it. Settings that are not named are absent. */
export interface Launch {
  /** Place that it was read at. */
  readonly source: string;
  readonly engine: EngineName;
  /** Checkpoint: the id of Hugging Face, or a folder. */
  readonly checkpoint: string;
  /** Name of the model where its checkpoint is known. */
  readonly model: string | null;
  readonly settings: LaunchSettings;
  /** Engines that are started so. */
  readonly replicas: number;
  /** Flags that change nothing that is simulated. */
  readonly withoutEffect: readonly string[];
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

const VLLM = /^(?:.*\/)?vllm$/;
const VLLM_MODULE = 'vllm.entrypoints.openai.api_server';
const SGLANG_MODULE = 'sglang.launch_server';

/** Whether words start an engine: `vllm serve ...`, or a Python module. */
export function startsEngine(words: readonly string[]): boolean {
  return (
    words.some((word, i) => VLLM.test(word) && words[i + 1] === 'serve') ||
    words.includes(VLLM_MODULE) ||
    words.includes(SGLANG_MODULE)
  );
}

/**
 * Reads the words of a command line.
 * @throws TuningError `INVALID_LAUNCH`
 */
export function parseLaunch(words: readonly string[], source: string, replicas = 1): Launch {
  const serve = words.findIndex((word, i) => VLLM.test(word) && words[i + 1] === 'serve');
  const sglang = words.indexOf(SGLANG_MODULE);
  const module = Math.max(words.indexOf(VLLM_MODULE), sglang);
  if (serve === -1 && module === -1) {
    throw invalid(
      source,
      'a line with `vllm serve`, `python -m vllm.entrypoints.openai.api_server` or `python -m sglang.launch_server`',
    );
  }
  const engine = sglang === -1 ? 'vLLM' : 'SGLang';
  const rest = words.slice(serve === -1 ? module + 1 : serve + 2);
  let checkpoint: string | undefined;
  const settings: LaunchSettings = {};
  const withoutEffect: string[] = [];
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
    const value = joined ?? (takesValue ? rest[++at] : undefined);
    const shown = value === undefined ? given : `${given} ${value}`;
    if (takesValue && value === undefined) throw invalid(source, `a value after ${given}`);
    if (name === '--model' || name === '--model-path') {
      checkpoint = value;
    } else if (flag === undefined) {
      notSimulated.push(shown);
    } else if (flag.read === undefined) {
      withoutEffect.push(shown);
    } else {
      const problem = flag.read(settings, value ?? '');
      if (problem === 'not simulated') notSimulated.push(shown);
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
  const model = modelOf(checkpoint);
  if (settings.weights === undefined && model !== null) settings.weights = model.precision;
  return {
    ...{ source, engine, checkpoint, model: model?.name ?? null, settings, replicas },
    ...{ withoutEffect, notSimulated },
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

/** Endings of the names of quantized checkpoints. */
const QUANTIZED =
  /[-_.](fp8([-_]dynamic)?|awq([-_]int4)?|gptq([-_]int4)?|int4|int8|w8a8|w4a16|quantized\.w8a8|quantized\.w4a16|nvfp4)$/i;

/** Model and precision of a checkpoint that is known, whoever has published it. */
function modelOf(checkpoint: string): { readonly name: string; readonly precision: WeightPrecision } | null {
  const plain = (text: string) => text.toLowerCase().replace(/^.*\//, '');
  const wanted = plain(checkpoint);
  for (const model of MODELS) {
    for (const [precision, id] of Object.entries(model.checkpoints)) {
      if (plain(id) === wanted) return { name: model.name, precision: precision as WeightPrecision };
    }
  }
  const bare = wanted.replace(QUANTIZED, '');
  const found = MODELS.find(({ id, name, aliases, checkpoints }) =>
    [id, name, ...aliases, ...Object.values(checkpoints)].some((each) => plain(each) === bare),
  );
  if (found === undefined) return null;
  const ending = QUANTIZED.exec(wanted)?.[1] ?? '';
  return { name: found.name, precision: precisionOf(ending) ?? found.checkpoint };
}

function precisionOf(ending: string): WeightPrecision | undefined {
  if (ending.startsWith('fp8')) return 'FP8';
  if (ending === 'nvfp4') return 'NVFP4';
  if (/w8a8|int8/.test(ending)) return 'INT8';
  return ending === '' ? undefined : 'INT4';
}
