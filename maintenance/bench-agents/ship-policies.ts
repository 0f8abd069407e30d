import { writeFileSync } from 'node:fs';
import { AGENTS, type ShippedName } from '@servegym/agents';
import { llmserve, type TaskId } from '@servegym/environments';
import type { BenchmarkPlan } from './benchmark-plan.ts';

const { network, shippedPolicies } = AGENTS.llmserve;

/** Puts policies where the catalogue finds them, and notes in the manifest what they were trained on. */
export async function shipPolicies(
  { taskIds }: BenchmarkPlan,
  agents: readonly ShippedName[],
  policyOf: (agent: ShippedName, taskId: TaskId) => Promise<Uint8Array>,
): Promise<void> {
  const manifest = shippedPolicies.manifest();
  const isCurrent = manifest.environment === llmserve.id && manifest.version === llmserve.version;
  const policies: Partial<Record<ShippedName, readonly TaskId[]>> = isCurrent ? { ...manifest.policies } : {};
  for (const agent of agents) {
    for (const taskId of taskIds) {
      const file = await policyOf(agent, taskId);
      writeFileSync(shippedPolicies.file(agent, taskId), file);
      if (shippedPolicies.isNetwork(agent)) {
        writeFileSync(shippedPolicies.onnx(agent, taskId), network.onnx(file));
      }
      const before = policies[agent] ?? [];
      policies[agent] = llmserve.tasks.shippedIds.filter((id) => id === taskId || before.includes(id));
      const { id: environment, version } = llmserve;
      const text = JSON.stringify({ environment, version, policies }, null, 2);
      writeFileSync(new URL('manifest.json', shippedPolicies.folder), `${text}\n`);
    }
  }
}
