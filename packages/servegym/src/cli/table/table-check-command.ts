import {
  inspectTable,
  KEY_COLUMNS,
  readTableRows,
  type TableFinding,
  type TableRows,
  TraceTableError,
} from '@servegym/environments';
import { Command } from 'commander';
import { readInputBytes } from '../arguments/read-input-file.ts';

/** What `--json` prints. */
interface CheckReport {
  readonly file: string;
  readonly playable: boolean;
  readonly rows: number;
  /** Values of each key column. */
  readonly grid: Readonly<Record<string, readonly number[]>>;
  readonly conditions: TableRows['conditions'] | null;
  readonly findings: readonly TableFinding[];
}

/** `servegym table check`: what a table lacks, in words. Ends with 1 when it cannot be played. */
export function tableCheckCommand(): Command {
  return new Command('check')
    .description('say what a table of your own measurements lacks before it can be played')
    .argument('<file.parquet>', 'the table')
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nEnds with 0 when the table can be played, with 1 when it cannot.')
    .action(check);
}

async function check(file: string, { json }: { json: boolean }): Promise<void> {
  const report = await examine(file, await readInputBytes(file));
  console.log(json ? JSON.stringify(report, null, 2) : describe(report));
  if (!report.playable) process.exitCode = 1;
}

async function examine(file: string, bytes: Uint8Array): Promise<CheckReport> {
  let rows: TableRows;
  try {
    rows = await readTableRows(bytes);
  } catch (error) {
    if (!(error instanceof TraceTableError)) throw error;
    const finding = { code: error.code, severity: 'error', message: error.message } as const;
    return { file, playable: false, rows: 0, grid: {}, conditions: null, findings: [finding] };
  }
  const findings = inspectTable(rows);
  return {
    file,
    playable: findings.every(({ severity }) => severity !== 'error'),
    rows: rows.count,
    grid: Object.fromEntries(
      KEY_COLUMNS.map((name) => [name, [...new Set(rows.columns[name] ?? [])].sort((a, b) => a - b)]),
    ),
    conditions: rows.conditions,
    findings,
  };
}

function describe({ file, playable, rows, grid, findings }: CheckReport): string {
  const lines = [`${file}: ${rows} rows`];
  for (const [name, values] of Object.entries(grid)) lines.push(`  ${name.padEnd(18)} ${values.join(' ')}`);
  for (const { severity, code, message } of findings) lines.push(`${severity} ${code}: ${message}`);
  if (!playable) lines.push('The table cannot be played.');
  else if (findings.length > 0) lines.push('The table can be played. Look at the warnings first.');
  else lines.push('The table can be played.');
  return lines.join('\n');
}
