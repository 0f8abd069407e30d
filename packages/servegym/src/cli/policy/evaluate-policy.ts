import { existsSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import type { PolicyFault } from '@servegym/simulator';
import { InputError, invalidFile } from '../failure.ts';
import { readInputFile } from '../files.ts';
import { isPython } from './python-guest.ts';
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
import { type Limits, type PlayedPolicy, startTrials, type TrialProcess } from './trial-host.ts';

export interface PolicyTrace extends SuiteTrace {
  readonly values: PlayedTrace;
  readonly figures: TraceFigures;
  readonly faults: readonly PolicyFault[];
  readonly calls: number;
  readonly policyMs: number;
  readonly cpuMs: number;
  /** Where the policy was stopped: the default served the trace, which counts as -1. */
  readonly stopped: string | null;
}

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

/** The JavaScript of a policy's text. @throws InputError */
export function policySource(text: string, path: string): string {
  let source = text;
  try {
    if (/\.[cm]?ts$/.test(path)) source = stripTypeScriptTypes(text);
  } catch (error) {
    throw invalidFile(`${path}: ${(error as Error).message}`);
  }
  // The function that policies are declared with is there without it.
  source = source.replace(/^[ \t]*import\s*\{\s*definePolicy\s*,?\s*\}\s*from\s*(['"])[@\w/]+\1/m, (found) =>
    found.replace(/[^\n]/g, ' '),
  );
  const at = source.search(/\bimport\b/);
  if (at < 0) return source;
  throw invalidFile(
    `${path}:${source.slice(0, at).split('\n').length}: expected a policy without imports, but for \`import { definePolicy } from 'servegym'\`; the word \`import\` may stand nowhere else, also in no comment`,
  );
}

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
  readonly #processes: readonly TrialProcess[];
  readonly #references = new Map<string, Promise<TraceFigures>>();

  constructor(
    suite: SuiteName,
    split: Split,
    traces: readonly SuiteTrace[],
    limits: Limits,
    processes = startTrials(limits, traces.length),
  ) {
    this.suite = suite;
    this.split = split;
    this.#traces = traces;
    this.#limits = limits;
    this.#processes = processes;
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
  async worstMinute({ traces, file }: Evaluation) {
    const at = traces.indexOf(worstOf(traces));
    const policies = [await readPolicy(file), { reference: referencesOf(this.suite).default }];
    const [process] = this.#processes;
    const answers = [];
    for (const policy of policies) answers.push(await process.run(this.#trial(at), policy));
    const [policy, standard] = answers.map((answer) =>
      typeof answer === 'string' || 'refusal' in answer ? null : answer.result,
    );
    return policy && standard && worstMinute(this.#trial(at), [policy, standard], WORTH);
  }

  async #play(file: string, played: PlayedPolicy, at: number, process: TrialProcess): Promise<PolicyTrace> {
    const trace = this.#traces[at];
    const later = at + this.#processes.length;
    // While the processes serve, a trace that is soon needed is drawn.
    const draw = () => void (later < this.#traces.length && this.#trial(later));
    const answer = await process.run(this.#trial(at), played, draw);
    if (typeof answer !== 'string' && 'refusal' in answer) throw invalidFile(`${file}: ${answer.refusal}`);
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
