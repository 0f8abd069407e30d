import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PolicyFault } from '@servegym/simulator';
import { InputError } from '../failure.ts';
import { readInputFile } from '../files.ts';
import { isPython, type PythonPolicy, pythonOf } from './python-guest.ts';
import { REFERENCE_NAMES, type ReferenceName } from './references.ts';
import { LEAST_UNIT, type PlayedTrace, type TraceFigures, traceFigures, worstMinute } from './score.ts';
import {
  drawTrial,
  recordedValues,
  referencesOf,
  type Split,
  type SuiteName,
  type SuiteTrace,
  WORTH,
} from './suite.ts';
import { impossible, type Trial } from './trial.ts';
import type { TrialAnswer, TrialJob } from './trial-process.ts';

/** Limits of one trace. */
export interface Limits {
  /** Requests to draw. Default: those of the suite. */
  readonly requests?: number | undefined;
  readonly seconds: number;
  readonly memoryMiB: number;
  /** Plays the default and the best known also where their values are recorded. */
  readonly isRecording?: boolean;
}

/** Why a policy was stopped on a trace: its time, its memory, or a result that cannot be. */
type Stop = 'time' | 'memory' | 'result';

/** A policy on one trace. */
export interface PolicyTrace extends SuiteTrace {
  /** Values of the policy, of the default and of the best known. */
  readonly values: PlayedTrace;
  readonly figures: TraceFigures;
  readonly faults: readonly PolicyFault[];
  readonly calls: number;
  readonly policyMs: number;
  readonly cpuMs: number;
  /** Where the policy was stopped: the default served the trace, which counts as -1. */
  readonly stopped: string | null;
}

/** What is played: the JavaScript of a module, a file in Python, or one of our policies. */
export type PlayedPolicy =
  | { readonly source: string }
  | { readonly python: Pick<PythonPolicy, 'source' | 'file'> }
  | { readonly reference: ReferenceName };

/** The policy of this name, or in this file. @throws InputError */
async function readPolicy(nameOrFile: string): Promise<PlayedPolicy> {
  const reference = REFERENCE_NAMES.find((name) => name === nameOrFile);
  if (reference !== undefined) return { reference };
  if (/^[a-z][\w-]*$/.test(nameOrFile) && !existsSync(nameOrFile))
    throw new InputError(`expected a file, or one of ${REFERENCE_NAMES.join(', ')}, got ${nameOrFile}`);
  return playedPolicy(await readInputFile(nameOrFile), nameOrFile);
}

/** A policy from the text of its file. @throws InputError */
export function playedPolicy(text: string, file: string): PlayedPolicy {
  return isPython(file) ? { python: { source: text, file } } : { source: policySource(text, file) };
}

/** The JavaScript of a policy's file. @throws InputError */
export async function readPolicySource(path: string): Promise<string> {
  return policySource(await readInputFile(path), path);
}

/** The JavaScript of a policy's text. @throws InputError */
function policySource(text: string, path: string): string {
  let source = text;
  try {
    if (/\.[cm]?ts$/.test(path)) source = stripTypeScriptTypes(text);
  } catch (error) {
    throw new InputError(`${path}: ${(error as Error).message}`, { code: 'INVALID_FILE' });
  }
  // The function that policies are declared with is there without it.
  source = source.replace(/^[ \t]*import\s*\{\s*definePolicy\s*,?\s*\}\s*from\s*(['"])[@\w/]+\1/m, (found) =>
    found.replace(/[^\n]/g, ' '),
  );
  const at = source.search(/\bimport\b/);
  if (at >= 0) {
    const line = source.slice(0, at).split('\n').length;
    throw new InputError(
      `${path}:${line}: expected a policy without imports, but for \`import { definePolicy } from 'servegym'\`; the word \`import\` may stand nowhere else, also in no comment`,
      { code: 'INVALID_FILE' },
    );
  }
  return source;
}

/**
 * The process of trials. With a policy in JavaScript it reads the packages' files and no others, starts nothing and loads no
 * addons. With one in Python, which is isolated by itself, it starts the process of that.
 */
export class TrialProcess {
  readonly #limits: Limits;
  #child: ChildProcess | null = null;
  #startsPython = false;
  #isClosed = false;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Serves a trace; answers why it was stopped where it took too long or too much memory. */
  async run(trial: Trial, policy: PlayedPolicy): Promise<TrialAnswer | Stop> {
    if (!('reference' in policy) && this.#startsPython !== 'python' in policy) {
      this.#kill();
      this.#startsPython = 'python' in policy;
    }
    this.#child ??= await this.#start();
    const child = this.#child;
    if (this.#isClosed) {
      this.#kill();
      throw new Error('the process of trials is closed');
    }
    const answer = await new Promise<TrialAnswer | Stop>((done) => {
      const timer = setTimeout(() => done('time'), 1000 * this.#limits.seconds);
      const settle = (value: TrialAnswer | Stop) => {
        clearTimeout(timer);
        child.removeAllListeners();
        done(value);
      };
      child.once('message', (message) => settle(message as TrialAnswer));
      child.once('exit', () => settle('memory'));
      child.send({ trial, ...this.#limited(policy) } satisfies TrialJob);
    });
    if (typeof answer === 'string') this.#kill();
    return answer;
  }

  #limited(policy: PlayedPolicy) {
    if (!('python' in policy)) return policy;
    const { memoryMiB: isolatedMiB, seconds } = this.#limits;
    return { python: { ...policy.python, isolatedMiB, seconds, python: pythonOf(process.env) } };
  }

  close(): void {
    this.#isClosed = true;
    this.#kill();
  }

  #kill(): void {
    this.#child?.kill('SIGKILL');
    this.#child = null;
  }

  async #start(): Promise<ChildProcess> {
    const file = fileURLToPath(new URL('./trial-process.ts', import.meta.url));
    // The folder of all packages: of the checkout, or `node_modules`.
    const packages = resolve(fileURLToPath(import.meta.resolve('@servegym/simulator')), '../../../..');
    const child = fork(file, {
      execArgv: [
        ...(this.#startsPython ? [] : ['--permission', `--allow-fs-read=${packages}`]),
        ...['--no-warnings', '--experimental-vm-modules'],
        '--disallow-code-generation-from-strings',
        `--max-old-space-size=${this.#limits.memoryMiB}`,
      ],
      env: this.#startsPython ? { PATH: process.env.PATH } : {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', process.env.SERVEGYM_DEBUG === '1' ? 'inherit' : 'ignore', 'ipc'],
    });
    await new Promise<void>((ready, failed) => {
      child.once('message', () => ready());
      child.once('exit', (code) => failed(new Error(`the process of trials ended with ${code}`)));
    });
    child.removeAllListeners();
    return child;
  }
}

/** The trace with the least gain over the default. */
export function worstOf(traces: readonly PolicyTrace[]): PolicyTrace {
  const gain = ({ values }: PolicyTrace) => values.policy - values.default;
  return traces.reduce((least, each) => (gain(each) < gain(least) ? each : least));
}

export interface Evaluation {
  readonly suite: SuiteName;
  readonly split: Split;
  readonly file: string;
  readonly traces: readonly PolicyTrace[];
}

/** Plays policies on traces, in as many processes as there are cores. */
export class PolicyEvaluator {
  readonly suite: SuiteName;
  readonly split: Split;
  readonly #traces: readonly SuiteTrace[];
  readonly #limits: Limits;
  readonly #trials: Trial[] = [];
  readonly #processes: TrialProcess[];
  readonly #references = new Map<string, Promise<TraceFigures>>();

  constructor(suite: SuiteName, split: Split, traces: readonly SuiteTrace[], limits: Limits) {
    this.suite = suite;
    this.split = split;
    this.#traces = traces;
    this.#limits = limits;
    const width = Math.min(availableParallelism(), traces.length);
    this.#processes = Array.from({ length: width }, () => new TrialProcess(limits));
  }

  close(): void {
    for (const process of this.#processes) process.close();
  }

  /** @throws InputError where the policy cannot begin */
  async evaluate(
    file: string,
    onTrace: (done: number, of: number) => void = () => {},
    policy?: PlayedPolicy,
  ): Promise<Evaluation> {
    const played = policy ?? (await readPolicy(file));
    const traces: PolicyTrace[] = [];
    let next = 0;
    let done = 0;
    const work = async (process: TrialProcess) => {
      while (next < this.#traces.length) {
        const at = next++;
        traces[at] = await this.#play(file, played, at, process);
        onTrace(++done, this.#traces.length);
      }
    };
    await Promise.all(this.#processes.map(work));
    return { suite: this.suite, split: this.split, file, traces };
  }

  /** The minute in which a policy lost most against the default, on the trace on which it gained least. */
  async worstMinute({ traces }: Evaluation) {
    const at = traces.indexOf(worstOf(traces));
    const standard = await this.#reference(referencesOf(this.suite).default, at, this.#processes[0]);
    return worstMinute(traces[at].figures, standard);
  }

  async #play(file: string, played: PlayedPolicy, at: number, process: TrialProcess): Promise<PolicyTrace> {
    const trace = this.#traces[at];
    const answer = await process.run(this.#trial(at), played);
    if (typeof answer !== 'string' && 'refusal' in answer)
      throw new InputError(`${file}: ${answer.refusal}`, { code: 'INVALID_FILE' });
    const problem = typeof answer === 'string' ? null : impossible(this.#trial(at), answer.result);
    const between = await this.#between(at, process);
    if (typeof answer === 'string' || problem !== null) {
      const why = typeof answer === 'string' ? answer : 'result';
      const { seconds, memoryMiB } = this.#limits;
      const sentence = {
        time: `the policy had not served the trace after ${seconds} s, and was stopped`,
        memory: `the process of the policy ended: it may use ${memoryMiB} MiB`,
        result: `the result cannot be: ${problem}`,
      }[why];
      const value = between.default - Math.max(LEAST_UNIT, Math.abs(between.best - between.default));
      const standard = await this.#reference(referencesOf(this.suite).default, at, process);
      return {
        ...{ ...trace, figures: standard, values: { policy: value, ...between }, stopped: sentence },
        ...{ faults: [], calls: 0, policyMs: 0, cpuMs: 0 },
      };
    }
    const { result, calls, policyMs, cpuMs } = answer;
    const figures = traceFigures(this.#trial(at), result, WORTH);
    const values = { policy: figures.value, ...between };
    return { ...trace, figures, values, faults: result.faults, stopped: null, calls, policyMs, cpuMs };
  }

  #trial(at: number): Trial {
    this.#trials[at] ??= drawTrial(this.suite, this.#traces[at], this.#limits.requests);
    return this.#trials[at];
  }

  /** Values of the default and of the best known: as recorded for the traces that are given, else as they are played. */
  async #between(at: number, process: TrialProcess): Promise<Omit<PlayedTrace, 'policy'>> {
    const { requests, isRecording } = this.#limits;
    const isRecorded = requests === undefined && !isRecording;
    const recorded = isRecorded && recordedValues(this.suite, this.split, this.#traces[at].name);
    if (recorded) return recorded;
    const references = referencesOf(this.suite);
    const standard = await this.#reference(references.default, at, process);
    const best = await this.#reference(references.best, at, process);
    return { default: standard.value, best: best.value };
  }

  /** Figures of a reference policy on a trace, played once. */
  #reference(reference: ReferenceName, at: number, process: TrialProcess): Promise<TraceFigures> {
    const key = `${reference} ${at}`;
    const known = this.#references.get(key);
    if (known !== undefined) return known;
    const playing = process.run(this.#trial(at), { reference }).then((answer) => {
      if (typeof answer === 'string' || 'refusal' in answer)
        throw new Error(`the policy ${reference} did not serve ${this.#traces[at].name}`);
      return traceFigures(this.#trial(at), answer.result, WORTH);
    });
    this.#references.set(key, playing);
    return playing;
  }
}
