import { llmserve, ServeEpisode } from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { EnvironmentError } from '@servegym/openenv/definition';
import { type JobInputs, jobsOn, takeInputs } from '../core/playable.ts';
import { playWindows } from '../core/policy.ts';
import { createServePolicy, type ServePolicy } from '../policies/serve-policies.ts';
import type { DemonstrationRequest, Demonstrations } from './distill.ts';
import type { FloatArray } from './kernels.ts';
import { knownTask, networkPolicy, SERVE_LEARNER } from './learners.ts';
import { FeatureEncoder } from './learning-environment.ts';
import { decodeSafetensors, encodeSafetensors, type Tensor } from './safetensors.ts';
import { type ActorWeights, decodeActor, encodeActor } from './trained-actor.ts';

/** An episode that a teacher has commented on. */
export interface DemonstratedEpisode extends Demonstrations {
  /** Of what was played. */
  readonly return: number;
}

/**
 * Plays an episode and puts down, for every window, what the teacher would do. `player` is the one who acts: the teacher
 * itself, or a student that is shown what to do where its own actions have led. Ross et al., "A Reduction of Imitation
 * Learning and Structured Prediction to No-Regret Online Learning" (DAgger), AISTATS 2011.
 */
export function demonstrate(
  taskId: string,
  trace: number,
  teacher: ServePolicy,
  player: ServePolicy = teacher,
): DemonstratedEpisode {
  const task = knownTask(llmserve, taskId);
  const codec = SERVE_LEARNER.codec(task);
  const heads = codec.headSizes.length;
  const encoder = new FeatureEncoder(llmserve.features);
  const { size } = encoder;
  const observations = new Float32Array(task.windows * size);
  const binsInForce = new Int32Array(task.windows * heads);
  const actions = new Int32Array(task.windows * heads);
  const episode = new ServeEpisode(task, trace);
  teacher.reset({ taskId, seed: trace });
  if (player !== teacher) player.reset({ taskId, seed: trace });
  playWindows(episode, (step) => {
    const { observation, previousAction, stepIndex } = step;
    encoder.encode(observation, previousAction, observations.subarray(stepIndex * size));
    const advised = teacher.act(step);
    binsInForce.set(codec.encode(previousAction), stepIndex * heads);
    actions.set(codec.encode(advised), stepIndex * heads);
    return player === teacher ? advised : player.act(step);
  });
  return { observations, binsInForce, actions, return: episode.totals.reward };
}

/** Episodes, one after the other. */
export function joinDemonstrations(episodes: readonly Demonstrations[]): Demonstrations {
  const total = (key: keyof Demonstrations) =>
    episodes.reduce((sum, episode) => sum + episode[key].length, 0);
  const joined = {
    observations: new Float32Array(total('observations')),
    binsInForce: new Int32Array(total('binsInForce')),
    actions: new Int32Array(total('actions')),
  };
  const at = { observations: 0, binsInForce: 0, actions: 0 };
  for (const episode of episodes) {
    for (const key of ['observations', 'binsInForce', 'actions'] as const) {
      joined[key].set(episode[key], at[key]);
      at[key] += episode[key].length;
    }
  }
  return joined;
}

/** An episode to be demonstrated. */
interface DemonstrationInput extends JobInputs {
  readonly taskId: string;
  readonly trace: number;
  /** A policy of the catalogue. */
  readonly teacher: string;
}

/**
 * The job `demonstrate`: plays an episode, and puts down what a teacher would do. Its file is that of the actor that plays;
 * without one the teacher does.
 */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { taskId, trace, teacher, file, shared } = input as unknown as DemonstrationInput;
  await takeInputs(llmserve, shared, {}, context);
  const weights = file === null ? undefined : decodeActor(context.shared(file)).weights;
  const shown = demonstrateWith(teacher, taskId, trace, weights);
  return Buffer.from(encodeDemonstrations([shown], {})).toString('base64');
}

/** Episodes as a teacher of the catalogue demonstrates them: an episode a job, or all on this thread without `jobs`. */
export async function haveDemonstrated(
  jobs: JobEngine | undefined,
  teacher: string,
  { taskId, traces, student }: DemonstrationRequest,
): Promise<readonly DemonstratedEpisode[]> {
  if (jobs === undefined) return traces.map((trace) => demonstrateWith(teacher, taskId, trace, student));
  const inputs = traces.map(
    (trace): Omit<DemonstrationInput, keyof JobInputs> => ({ taskId, trace, teacher }),
  );
  const file = student && encodeActor(student, {});
  const outputs = await jobs.run(await jobsOn(jobs, 'demonstrate', llmserve, { taskId }, inputs, file));
  return outputs.flatMap((file) => decodeDemonstrations(Buffer.from(file as string, 'base64'))!.episodes);
}

function demonstrateWith(
  teacher: string,
  taskId: string,
  trace: number,
  student?: ActorWeights,
): DemonstratedEpisode {
  return demonstrate(taskId, trace, createServePolicy(teacher), student && studentPolicy(taskId, student));
}

/** The policy of a student of a task. */
export function studentPolicy(taskId: string, weights: ActorWeights): ServePolicy {
  return networkPolicy(SERVE_LEARNER, knownTask(llmserve, taskId), { weights, training: {} });
}

const VERSION = '1';

/** Writes episodes of one task as safetensors, a row of each tensor for each. `metadata` is kept beside them. */
export function encodeDemonstrations(
  episodes: readonly DemonstratedEpisode[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const tensor = (valuesOf: (episode: DemonstratedEpisode) => Float32Array | Int32Array): Tensor => {
    const values = Float32Array.from(episodes.flatMap((episode) => [...valuesOf(episode)]));
    return { shape: [episodes.length, values.length / episodes.length], values };
  };
  return encodeSafetensors({
    tensors: {
      observations: tensor(({ observations }) => observations),
      bins_in_force: tensor(({ binsInForce }) => binsInForce),
      actions: tensor(({ actions }) => actions),
      returns: { shape: [episodes.length, 1], values: Float64Array.from(episodes, (shown) => shown.return) },
    },
    metadata: { ...metadata, demonstrations: VERSION },
  });
}

/** Reads what `encodeDemonstrations` wrote; `null` for a file of something else. @throws EnvironmentError `TENSOR_FILE` */
export function decodeDemonstrations(file: Uint8Array): {
  episodes: DemonstratedEpisode[];
  metadata: Readonly<Record<string, string>>;
} | null {
  const { tensors, metadata } = decodeSafetensors(file);
  const { demonstrations, ...others } = metadata;
  if (demonstrations === undefined) return null;
  if (demonstrations !== VERSION) {
    throw new EnvironmentError(
      'TENSOR_FILE',
      `Expected demonstrations of version ${VERSION}, got version ${demonstrations}`,
    );
  }
  const count = tensors.returns?.shape[0] ?? 0;
  const rows = (name: string) => rowsOf(tensors[name], name, count);
  const [observations, binsInForce, actions] = [rows('observations'), rows('bins_in_force'), rows('actions')];
  const episodes = rows('returns').map(([earned], e) => ({
    observations: Float32Array.from(observations[e]),
    binsInForce: Int32Array.from(binsInForce[e]),
    actions: Int32Array.from(actions[e]),
    return: earned!,
  }));
  return { episodes, metadata: others };
}

function rowsOf(tensor: Tensor | undefined, name: string, count: number): FloatArray[] {
  if (tensor?.shape.length !== 2 || tensor.shape[0] !== count) {
    throw new EnvironmentError(
      'TENSOR_FILE',
      `Expected a tensor \`${name}\` of ${count} rows, got ${tensor ? `one of shape ${tensor.shape.join(' x ')}` : 'none'}`,
    );
  }
  const width = tensor.shape[1];
  return Array.from({ length: count }, (_, row) => tensor.values.subarray(row * width, (row + 1) * width));
}
