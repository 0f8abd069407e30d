import type { LeagueErrors, LeagueGroup, LeagueRow } from './fidelity.ts';
import { leagueGroups } from './league.ts';
import { table } from './markdown-table.ts';

const ENGINES = { vllm: 'vLLM', sglang: 'SGLang' } as const;

/** The section on operating points, in Markdown. */
export function leagueReport(rows: readonly LeagueRow[]): string {
  return `## Operating points

Mean TTFT and TPOT of ${rows.length} public operating points: so many requests in flight, ten times as many sent (in Qwen3-32B
on SGLang as many), lengths drawn from 0.8 to 1.0 of the nominal ones (\`systems/silicon_sample.csv\` of NVIDIA's aiconfigurator-core 0.12, Apache-2.0). Every
profile is made from kernel tables, as \`servegym calibrate --tables\` does. Held out, and never looked at: Qwen3-32B and
Llama-3.1-70B on vLLM, Kimi-K2.5, B300, GB200, GB300, prefill and decode apart. Errors are means without their signs.
\`benchmarks/league/aiconfigurator_answers.py\` asks NVIDIA's estimator for the same points; "both": over the rows that both answer.

${Object.entries(ENGINES)
  .map(([engine, name]) => {
    const own = rows.filter(({ point }) => point.engine === engine);
    return own.length === 0 ? '' : `### ${name}\n\n${groupTable(leagueGroups(own))}\n\n${failures(own)}`;
  })
  .filter((text) => text !== '')
  .join('\n\n')}
`;
}

function groupTable(groups: readonly LeagueGroup[]): string {
  const isBeside = groups.some(({ theirs }) => theirs !== null);
  return table(
    [
      ...['rows of', 'rows', 'failed', 'TPOT', 'TTFT'],
      ...(isBeside
        ? ['aiconfigurator failed', 'its TPOT', 'its TTFT', 'ours, both: TPOT', 'ours, both: TTFT']
        : []),
    ],
    groups.map(({ group, rows, ours, theirs, oursBeside }) => [
      group,
      `${rows}`,
      ...errorCells(ours),
      ...(theirs === null ? [] : errorCells(theirs)),
      ...(oursBeside === null ? [] : errorCells(oursBeside).slice(1)),
    ]),
  );
}

function errorCells({ failed, tpot, ttft }: LeagueErrors): string[] {
  return [`${failed}`, ...[tpot, ttft].map((error) => (error === null ? '-' : `${error.toFixed(1)} %`))];
}

/** Reasons of rows without an answer, the most frequent first. */
function failures(rows: readonly LeagueRow[]): string {
  const counts = new Map<string, number>();
  for (const { point, ours } of rows) {
    if (!('error' in ours)) continue;
    const reason = `${point.model.replace(/^.*\//, '')} on ${point.system}: ${shortened(ours.error)}`;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  if (counts.size === 0) return 'Every row has an answer.';
  const listed = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `- ${count} rows: ${reason}`);
  return `Rows without an answer:\n\n${listed.join('\n')}`;
}

function shortened(reason: string): string {
  const text = reason.replace(/\(.*?\)/, '').replaceAll(/\s+/g, ' ');
  return text.length <= 160 ? text : `${text.slice(0, 160)} ...`;
}
