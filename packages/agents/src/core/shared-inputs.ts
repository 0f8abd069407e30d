import {
  addServeTrace,
  findServeTrace,
  llmserve,
  type RegisteredEnvironment,
  type ServeScenario,
  type ServeTask,
} from '@servegym/environments';
import type { JobContext, JobEngine } from '@servegym/jobs';
import { decodeTrace, encodeTrace } from '@servegym/simulator';
import { createPolicy, type ServePolicy } from '../policies/serve-policies.ts';
import { loadTrainedPolicy } from '../policies/trained-policies.ts';

/** A policy of `llmserve` as callers name it: a name of the catalogue, or the file that training wrote. */
export type PolicySource = string | Uint8Array;

/** A policy of `llmserve` as jobs name it: by its name, or by the shared bytes of its file. */
export type SharedPolicy = { readonly name: string } | { readonly trained: string };

/** Makes a policy known to jobs. */
export async function sharePolicy(jobs: JobEngine, source: PolicySource): Promise<SharedPolicy> {
  return typeof source === 'string' ? { name: source } : { trained: await jobs.share(source) };
}

/** Names of the shared bytes that a job with this policy needs. */
export function sharedOfPolicy(policy: SharedPolicy): string[] {
  return 'trained' in policy ? [policy.trained] : [];
}

/** The policy, in a job. */
export function findSharedPolicy(policy: SharedPolicy, context: JobContext): ServePolicy {
  return 'name' in policy
    ? createPolicy(policy.name)
    : loadTrainedPolicy(context.shared(policy.trained)).policy;
}

/** The task of this id where it is one of the caller's own; `undefined` for one that comes with ServeGym. */
export function findOwnTask(taskId: string): ServeTask | undefined {
  return llmserve.tasks.isOwn(taskId) ? llmserve.tasks.find(taskId) : undefined;
}

/** Shares a task of the caller's own; `undefined` for one that comes with ServeGym. */
export async function shareTask(
  jobs: JobEngine,
  taskId: string,
  { tasks }: Pick<RegisteredEnvironment, 'tasks'> = llmserve,
): Promise<string | undefined> {
  const task = tasks.isOwn(taskId) ? tasks.find(taskId) : undefined;
  return task && jobs.share(Buffer.from(JSON.stringify(task)));
}

/** Makes the task known to a job that was given its shared bytes, in the place of another's of the same id. */
export function addSharedTask(
  shared: string | undefined,
  context: JobContext,
  { tasks }: Pick<RegisteredEnvironment, 'tasks'> = llmserve,
): void {
  if (shared !== undefined) tasks.add(tasks.parse(sharedJson(shared, context), JOB_INPUT));
}

/** Source of a task, for messages. */
const JOB_INPUT = 'What the job was given';

function sharedJson(shared: string, context: JobContext): unknown {
  return JSON.parse(Buffer.from(context.shared(shared)).toString());
}

/** Shares the trace of the caller's own that a scenario names; `undefined` where it names none. */
export async function shareTrace(jobs: JobEngine, { trace }: ServeScenario): Promise<string | undefined> {
  return typeof trace === 'string' ? jobs.share(encodeTrace(findServeTrace(traceName(trace))!)) : undefined;
}

const knownTraces = new Set<string>();

/** Makes the trace known that a scenario names, in a job that was given its shared bytes. */
export function addSharedTrace(
  { trace }: ServeScenario,
  shared: string | undefined,
  context: JobContext,
): void {
  if (shared === undefined || typeof trace !== 'string' || knownTraces.has(shared)) return;
  addServeTrace(traceName(trace), decodeTrace(context.shared(shared)));
  knownTraces.add(shared);
}

/** A scenario pins its trace by a digest behind the name. */
function traceName(pinned: string): string {
  return pinned.replace(/@.*$/, '');
}
