import { findProfile, listProfiles } from '@servegym/profiles';
import { type EngineProfile, RandomStream, weightVariant } from '@servegym/simulator';
import { findWorkload, WORKLOAD_IDS } from '../workload/fitted-workload.ts';
import type { ServeTask } from './serve-task.ts';
import { lengthenPrompts, profileFits, scaleArrivals, shiftTask, taskUnderSource } from './shifts.ts';

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
