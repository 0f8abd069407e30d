import { writeFileSync } from 'node:fs';
import {
  decodeServeActor,
  encodeOnnxActor,
  isNetwork,
  readManifest,
  SHIPPED_FOLDER,
  type ShippedName,
  serveLearningTask,
  shippedFile,
  shippedOnnx,
} from '@servegym/agents';
import { llmserve, type TaskId } from '@servegym/environments';
import type { BenchmarkPlan } from './benchmark-plan.ts';

/** Puts policies where the catalogue finds them, and notes in the manifest what they were trained on. */
export async function shipPolicies(
  { taskIds }: BenchmarkPlan,
  agents: readonly ShippedName[],
  policyOf: (agent: ShippedName, taskId: TaskId) => Promise<Uint8Array>,
): Promise<void> {
  const manifest = readManifest();
  const isCurrent = manifest.environment === llmserve.id && manifest.version === llmserve.version;
  const policies: Partial<Record<ShippedName, readonly TaskId[]>> = isCurrent ? { ...manifest.policies } : {};
  for (const agent of agents) {
    for (const taskId of taskIds) {
      const file = await policyOf(agent, taskId);
      writeFileSync(shippedFile(agent, taskId), file);
      if (isNetwork(agent)) {
        const { weights } = decodeServeActor(file);
        const { metadata } = serveLearningTask(taskId);
        writeFileSync(shippedOnnx(agent, taskId), encodeOnnxActor(weights, metadata));
      }
      const before = policies[agent] ?? [];
      policies[agent] = llmserve.tasks.shippedIds.filter((id) => id === taskId || before.includes(id));
      const { id: environment, version } = llmserve;
      const text = JSON.stringify({ environment, version, policies }, null, 2);
      writeFileSync(new URL('manifest.json', SHIPPED_FOLDER), `${text}\n`);
    }
  }
}
