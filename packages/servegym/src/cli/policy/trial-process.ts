// The process in which a policy and the simulation run. `evaluate-policy.ts` starts it without permissions.
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import type { PolicyFunctions } from '@servegym/simulator';
import { randomNumbers } from './guest.ts';
import type { GuestPolicy } from './guest-policy.ts';
import { type PythonPolicy, playPython } from './python-guest.ts';
import { type ReferenceName, STANDARD, startReference } from './references.ts';
import { sandboxPolicy } from './sandbox.ts';
import { runScaledTrial, runTrial, type Trial, type TrialResult } from './trial.ts';

/** A trace to be served: by the JavaScript of a policy, by a process of Python, or by one of ours. */
export type TrialJob = { readonly trial: Trial } & (
  | { readonly source: string }
  | { readonly python: PythonPolicy }
  | { readonly reference: ReferenceName }
);

/** What came of it: a result, or a sentence why the policy could not begin. */
export type TrialAnswer =
  | {
      readonly result: TrialResult;
      readonly calls: number;
      readonly policyMs: number;
      readonly cpuMs: number;
    }
  | { readonly refusal: string };

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const run = (trial: Trial, functions: PolicyFunctions<unknown>) =>
  (trial.task === undefined ? runTrial : runScaledTrial)(trial, functions, STANDARD as PolicyFunctions);

async function serve(job: TrialJob): Promise<TrialAnswer> {
  const { trial } = job;
  const begin = cpuMs();
  if ('reference' in job) {
    const functions = await startReference(job.reference);
    const result = await run(trial, functions);
    return { result, calls: 0, policyMs: 0, cpuMs: cpuMs() - begin };
  }
  let policy: GuestPolicy & Partial<ReturnType<typeof playPython>>;
  try {
    policy =
      'python' in job
        ? playPython(job.python, randomNumbers(trial.seed))
        : await sandboxPolicy(job.source, trial.seed);
  } catch (error) {
    return { refusal: (error as Error).message };
  }
  const result = await run(trial, policy.functions);
  const policyMs = policy.spentMs();
  // As where a policy of JavaScript ends this process.
  if (policy.hasEnded?.()) process.exit(1);
  policy.close?.();
  const spentMs = cpuMs() - begin + ('python' in job ? policyMs : 0);
  return { result, calls: policy.calls(), policyMs, cpuMs: spentMs };
}

/** Classes whose methods the simulation calls. */
const CLASSES = [
  ...[Object, Function, Array, Number, Boolean, String, Symbol, RegExp, Map, Set, WeakMap, WeakSet, Promise],
  ...[ArrayBuffer, DataView, Uint8Array, Int32Array, Uint32Array, Float64Array],
  ...[Float64Array, [].values(), new Map().values(), new Set().values()].map(Object.getPrototypeOf),
];
// Should an object of this realm ever get to a policy. Node's own `--frozen-intrinsics` turns methods into getters, which took
// a third of the time of a trace.
for (const each of [...CLASSES, Math, JSON, Reflect]) {
  Object.freeze(each);
  if ('prototype' in each) Object.freeze(each.prototype);
}
// A promise that a policy rejects is nobody's.
process.on('unhandledRejection', () => {});
process.on('message', async (job: TrialJob) => {
  if (job.trial.task !== undefined) await import('@servegym/environments');
  if (getCompileCacheDir() !== undefined) {
    flushCompileCache();
    // Gives up writing. Without permissions there are none to give up: with a policy in Python.
    (process.permission as { drop?(scope: string): void } | undefined)?.drop?.('fs.write');
  }
  process.send!(await serve(job));
});
process.send!('ready');
