import { findProfile, listProfiles } from '@servegym/profiles';
import { type EngineProfile, RandomStream, weightVariant } from '@servegym/simulator';
import { relatedProfile } from '../scenario.ts';
import { REQUEST_CLASSES } from '../tasks.ts';
import { findWorkload, WORKLOAD_IDS } from '../workload/fitted-workload.ts';
import { QUANTIZATION_TIERS } from './schema.ts';
import type { Phase, ServeTask } from './serve-task.ts';
import type { RequestSource } from './source-requests.ts';

/** Names of the changes of a task that test how policies generalise. */
export const SHIFTS = ['rate_1.5', 'long_prompts', 'other_gpu', 'other_model'] as const;
export type Shift = (typeof SHIFTS)[number];

/** Prompts of `long_prompts` are this many times as long. */
const LONGER = 2;
/** Arrivals of `rate_1.5` come this many times as fast. */
export const FASTER = 1.5;

/** The same task, shifted: knobs, objectives, prices and default configuration stay. @throws RangeError when no profile fits */
export function shiftTask(task: ServeTask, shift: Shift): ServeTask {
  switch (shift) {
    case 'rate_1.5':
      return scaleArrivals(task, FASTER);
    case 'long_prompts':
      return lengthenPrompts(task, LONGER);
    case 'other_gpu':
      return { ...task, profile: relatedTo(task, 'gpu') };
    case 'other_model':
      return { ...task, profile: relatedTo(task, 'model') };
  }
}

/** The same task with arrivals `factor` times as fast. */
export function scaleArrivals(task: ServeTask, factor: number): ServeTask {
  const phases = task.phases.map((phase) => ({
    ...phase,
    arrivalsPerSecond: [phase.arrivalsPerSecond[0] * factor, phase.arrivalsPerSecond[1] * factor] as const,
  }));
  const { source } = task;
  return { ...task, phases, ...(source && { source: { ...source, rateScale: source.rateScale * factor } }) };
}

/** The same task with prompts `factor` times as long. */
function lengthenPrompts(task: ServeTask, factor: number): ServeTask {
  const phases = task.phases.map((phase) => ({ ...phase, traffic: longerPrompts(phase.traffic, factor) }));
  const { source } = task;
  return {
    ...task,
    phases,
    ...(source && { source: { ...source, promptScale: source.promptScale * factor } }),
  };
}

function longerPrompts(traffic: Phase['traffic'], factor: number): Phase['traffic'] {
  return Object.fromEntries(
    Object.entries(traffic).map(([kind, { prompt, ...rest }]) => [
      kind,
      {
        ...rest,
        prompt: {
          ...prompt,
          median: prompt.median * factor,
          min: prompt.min * factor,
          max: prompt.max * factor,
        },
      },
    ]),
  );
}

/** The profile that is most like the task's, but for its GPU or its model. @throws RangeError when there is none */
function relatedTo(task: ServeTask, other: 'gpu' | 'model'): string {
  return relatedProfile(task.profile, other, task.id, (profile) => profileFits(profile, task)).name;
}

/** True when a profile has weights of every precision and the acceptance tables that a task needs. */
export function profileFits(profile: EngineProfile, task: ServeTask): boolean {
  const tables = profile.speculation?.survival;
  return (
    QUANTIZATION_TIERS.every((tier) => profile.weights[tier] !== undefined) &&
    [task.acceptance, ...task.phases.map((phase) => phase.acceptance ?? task.acceptance)].every(
      (table) => tables?.[table] !== undefined,
    )
  );
}

/**
 * A task's machine, objectives, prices and tenants under requests from elsewhere. The phases become one: classes have
 * the shares that they have on average over the task's phases, and quality the value.
 */
export function taskUnderSource(
  task: ServeTask,
  name: string,
  requests: RequestSource['requests'],
): ServeTask {
  const { phases } = task;
  const time = phases.map(({ weight, windows }) => (weight * (windows[0] + windows[1])) / 2);
  const total = time.reduce((sum, part) => sum + part, 0);
  const average = (of: (phase: Phase) => number) =>
    phases.reduce((sum, phase, i) => sum + of(phase) * time[i], 0) / total;
  const arrivals = (phase: Phase) => (phase.arrivalsPerSecond[0] + phase.arrivalsPerSecond[1]) / 2;
  const traffic: { -readonly [Kind in keyof Phase['traffic']]: Phase['traffic'][Kind] } = {};
  for (const kind of REQUEST_CLASSES) {
    const lengths = phases.find((phase) => phase.traffic[kind] !== undefined)?.traffic[kind];
    if (lengths === undefined) continue;
    const share = average((phase) => arrivals(phase) * (phase.traffic[kind]?.share ?? 0)) / average(arrivals);
    traffic[kind] = { ...lengths, share };
  }
  const all: Phase = {
    ...phases[0],
    name,
    weight: 1,
    windows: [
      Math.min(...phases.map((phase) => phase.windows[0])),
      Math.max(...phases.map((phase) => phase.windows[1])),
    ],
    burstiness: 0,
    traffic,
    tenantGiB: [
      Math.min(...phases.map((phase) => phase.tenantGiB[0])),
      Math.max(...phases.map((phase) => phase.tenantGiB[1])),
    ],
    acceptance: task.acceptance,
    qualityValue: average((phase) => phase.qualityValue),
  };
  return { ...task, phases: [all], source: { name, requests, rateScale: 1, promptScale: 1 } };
}

/** Share of the episodes that are the task as it is. */
const UNCHANGED = 0.25;
/** Of the others, shares with another server, and with the traffic of a public trace's model. */
const OTHER_SERVER = 0.5;
const PUBLIC_TRAFFIC = 0.3;
/** Arrivals and prompts are scaled by a factor within these, drawn by its logarithm. */
const RATES = [0.6, 1.7] as const;
const PROMPTS = [0.5, 2.2] as const;
/** Weights of other models are at most this many times as large or as small. */
const LARGEST_MODEL = 2;

/**
 * The task with a server, rates, prompts and traffic drawn by a seed, for policies that are to run many. Knobs,
 * objectives, prices and the default configuration stay. The server of the shift `other_gpu` is never drawn: its GPU and
 * its model are, with others, so that this combination is new to what was trained.
 */
export function randomiseTask(task: ServeTask, seed: number): ServeTask {
  const draws = new RandomStream(seed, 'randomise');
  if (draws.uniform() < UNCHANGED) return task;
  let drawn = task;
  if (draws.uniform() < OTHER_SERVER) {
    const servers = trainingProfiles(task);
    if (servers.length > 0) drawn = { ...drawn, profile: servers[draws.integer(0, servers.length - 1)]! };
  }
  if (draws.uniform() < PUBLIC_TRAFFIC) {
    const model = findWorkload(WORKLOAD_IDS[draws.integer(0, WORKLOAD_IDS.length - 1)]!)!;
    drawn = taskUnderSource(drawn, model.id, { kind: 'workload', model });
  }
  const factor = ([low, high]: readonly [number, number]) => low * (high / low) ** draws.uniform();
  return lengthenPrompts(scaleArrivals(drawn, factor(RATES)), factor(PROMPTS));
}

const KNOWN = new WeakMap<ServeTask, readonly string[]>();

/** Profiles that can play the task, of as many GPUs and a model of about the size, but for the held-out combination. */
export function trainingProfiles(task: ServeTask): readonly string[] {
  const known = KNOWN.get(task);
  if (known !== undefined) return known;
  const own = findProfile(task.profile);
  const size = (profile: EngineProfile) => Math.log(weightVariant(profile, 'FP16').weightGiB);
  const fitting = listProfiles().filter(
    (profile) =>
      profileFits(profile, task) &&
      profile.gpu.count === own.gpu.count &&
      Math.abs(size(profile) - size(own)) <= Math.log(LARGEST_MODEL) &&
      profile.name !== heldOutProfile(task),
  );
  const names = fitting.map(({ name }) => name);
  KNOWN.set(task, names);
  return names;
}

/** Server of the shift `other_gpu`; `undefined` where no profile fits. */
function heldOutProfile(task: ServeTask): string | undefined {
  try {
    return shiftTask(task, 'other_gpu').profile;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
