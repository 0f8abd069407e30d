import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ActorWeights, encodeOnnxActor } from '@servegym/agents';
import type { NetworkTrainingPlan } from './training-plan.ts';

/** Where a trained network lies in its folder, for agents, for ONNX runtimes, and to go on with. */
export function networkFiles(folder: string) {
  return {
    policy: join(folder, 'policy.safetensors'),
    onnx: join(folder, 'policy.onnx'),
    checkpoint: join(folder, 'checkpoint.safetensors'),
  };
}

/** A network, and how it came to be. */
export interface TrainedNetwork extends Pick<NetworkTrainingPlan, 'learningTask' | 'algorithm' | 'seed'> {
  readonly weights: ActorWeights;
  /** Windows that it learned from. */
  readonly steps: number;
}

/** Writes a network for agents and for ONNX runtimes. */
export function writeNetwork(
  files: ReturnType<typeof networkFiles>,
  { learningTask, algorithm, weights, steps, seed }: TrainedNetwork,
): void {
  writeFileSync(files.policy, learningTask.encodeActor(weights, { algorithm, steps, seed }));
  writeFileSync(files.onnx, encodeOnnxActor(weights, learningTask.metadata));
}

/** Where configurations that were searched lie in their folder. */
export function searchedFiles(folder: string) {
  return { policy: join(folder, 'policy.json') };
}
