import { readFileSync } from 'node:fs';
import { llmserve, type ServeAction, type ServeObservation, type TaskId } from '@servegym/environments';
import type { Policy } from '../core/policy.ts';
import { otherTask } from '../learning/trained-for.ts';
import { EpisodePolicy } from './catalogue.ts';

/** Algorithms whose policies come with the package, and the form of their files. */
export const SHIPPED_FORMATS = { ppo: 'safetensors', distilled: 'safetensors', cem: 'json' } as const;
export type ShippedName = keyof typeof SHIPPED_FORMATS;
/** Shipped policies that are networks; they come for ONNX runtimes too. */
export type ShippedNetwork = Exclude<ShippedName, 'cem'>;

/** Content of `weights/manifest.json`: the environment's version in training, and the tasks of each algorithm. */
export interface Manifest {
  readonly environment: string;
  readonly version: string;
  readonly policies: Readonly<Partial<Record<ShippedName, readonly TaskId[]>>>;
}

/** Folder of the shipped policies. */
const SHIPPED_FOLDER = new URL('../../weights/', import.meta.url);

/** File of the shipped policy of a task. */
export function shippedFile(name: ShippedName, taskId: TaskId): URL {
  return new URL(`${name}-${taskId}.${SHIPPED_FORMATS[name]}`, SHIPPED_FOLDER);
}

/** File of the shipped network of a task for ONNX runtimes. */
export function shippedOnnx(name: ShippedNetwork, taskId: TaskId): URL {
  return new URL(`${name}-${taskId}.onnx`, SHIPPED_FOLDER);
}

export function isNetwork(name: ShippedName): name is ShippedNetwork {
  return SHIPPED_FORMATS[name] === 'safetensors';
}

/** True when policies of that name come with the package for every task, trained on this version of `llmserve`. */
export function isShipped(name: ShippedName): boolean {
  return whyNotShipped(name) === undefined;
}

/**
 * Why a policy that can be trained does not come with the package, as a sentence for people.
 * @returns `undefined` where it does come with it, and for names of other policies
 */
export function whyNotShipped(name: string, manifest: Manifest = readManifest()): string | undefined {
  if (!Object.hasOwn(SHIPPED_FORMATS, name)) return undefined;
  const trained = manifest.policies[name as ShippedName] ?? [];
  const [got, expected] = [manifest, { environment: llmserve.id, version: llmserve.version }].map(
    ({ environment, version }) => `${environment} ${version}`,
  );
  if (trained.length > 0 && got !== expected) {
    return `Expected ${name} to have been trained on ${expected}, got one of ${got}: train it anew`;
  }
  const missing = llmserve.tasks.shippedIds.filter((taskId) => !trained.includes(taskId));
  if (missing.length === 0) return undefined;
  return `Expected ${name} to have been trained on ${expected}, got none for ${missing.join(', ')}: train it first`;
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(new URL('manifest.json', SHIPPED_FOLDER), 'utf8')) as Manifest;
}

/**
 * Plays every task with what was trained for it. Its reset throws EnvironmentError `OTHER_TASK` for a task that nothing was
 * trained for.
 */
export function shippedPolicy(
  name: ShippedName,
  load: (file: Uint8Array) => { readonly policy: Policy<ServeAction, ServeObservation> },
): Policy<ServeAction, ServeObservation> {
  const loaded = new Map<TaskId, Policy<ServeAction, ServeObservation>>();
  return new EpisodePolicy(name, (episode) => {
    const taskId = llmserve.tasks.shippedIds.find((id) => id === episode.taskId);
    if (taskId === undefined) throw otherTask(llmserve.tasks.shippedIds.join(' or '), episode.taskId);
    const policy = loaded.get(taskId) ?? load(readFileSync(shippedFile(name, taskId))).policy;
    loaded.set(taskId, policy);
    policy.reset(episode);
    return (step) => policy.act(step);
  });
}

/** The policies that come with the package, for those who train, write and measure them. */
export const SHIPPED_POLICIES = {
  formats: SHIPPED_FORMATS,
  folder: SHIPPED_FOLDER,
  file: shippedFile,
  onnx: shippedOnnx,
  manifest: readManifest,
  isNetwork,
  isShipped,
  whyNotShipped,
} as const;
