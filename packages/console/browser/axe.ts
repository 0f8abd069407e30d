import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ConsolePage } from './console-page.ts';

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

interface AxeWindow {
  readonly axe: {
    run(): Promise<{
      violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
    }>;
  };
}

/** Fails with what axe-core calls serious or critical on the page as it stands. */
export async function assertAccessible({ page }: ConsolePage, what: string): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => (globalThis as unknown as AxeWindow).axe.run());
  const serious = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`).join('\n')}`,
    );
  assert.deepEqual(serious, [], what);
}
