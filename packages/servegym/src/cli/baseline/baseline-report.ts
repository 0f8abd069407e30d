import { alignedRows } from '@servegym/tuning/report';
import type { BaselineResult } from './run-baseline.ts';

/** A baseline for people. */
export function baselineTable(result: BaselineResult): string {
  const isModel = result.usage !== null;
  const rows = [
    ['task', 'score', 'return', 'steps', 'wall, s', ...(isModel ? ['invalid', 'kept last'] : [])],
  ];
  for (const { task_id, score, return: total, steps, wall_s, answers } of result.tasks) {
    rows.push([
      String(task_id ?? result.environment),
      score.toFixed(3),
      total.toFixed(2),
      String(steps),
      wall_s.toFixed(1),
      ...(answers ? [String(answers.invalid), String(answers.keptLast)] : []),
    ]);
  }
  const player = isModel ? `${result.model} at ${result.api_base_url}` : result.agent;
  const lines = [`${result.environment}, seed ${result.seed}: ${player}`, '', ...alignedRows(rows), ''];
  lines.push(`mean score ${result.mean_score.toFixed(3)}`);
  if (result.usage !== null) {
    const { calls, failedCalls, promptTokens, completionTokens, cost_usd, format } = result.usage;
    lines.push(
      `${calls} calls (${failedCalls} failed), ${promptTokens} prompt and ${completionTokens} completion tokens, answers as ${format}`,
      cost_usd === null
        ? 'cost unknown: give --input-price and --output-price'
        : `cost ${cost_usd.toFixed(4)} USD`,
    );
  }
  return lines.join('\n');
}
