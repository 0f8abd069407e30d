import {
  type ActorWeights,
  createPolicy,
  type DemonstratedEpisode,
  demonstrate,
  PpoPolicy,
} from '@servegym/agents';

/** An episode as a teacher of the catalogue demonstrates it; `student` plays where there is one. */
export function demonstrateWith(
  teacher: string,
  taskId: string,
  trace: number,
  student?: ActorWeights,
): DemonstratedEpisode {
  const player = student && new PpoPolicy({ taskId, weights: student, training: {} });
  return demonstrate(taskId, trace, createPolicy(teacher), player);
}
