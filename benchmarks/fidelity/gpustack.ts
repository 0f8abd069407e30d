import { readFile } from 'node:fs/promises';
import { blocksOf, type Deployment } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { closedBatch } from '@servegym/simulator';
import { resolveLaunch } from '../../packages/operators/src/deployment/deployment.ts';
import { readLaunch } from '../../packages/operators/src/deployment/launch.ts';
import { type CsvRow, readCsv } from '../../packages/profiles/src/tables/read-csv.ts';

const RESULT = [
  ...(['id', 'gpu', 'engine', 'engine_version', 'serving_command', 'duplicate_of', 'duration_s'] as const),
] as const;
const TOTALS = ['successful_requests', 'total_input_tokens', 'total_output_tokens'] as const;

/** Results of gpustack's performance lab whose commands start a shipped profile, with what they start. */
export async function readResults<const Column extends string>(data: string, columns: readonly Column[]) {
  const [file] = findReferenceFiles(data, [REFERENCE_DATA.flagResults]);
  const rows = readCsv(await readFile(file, 'utf8'), file, [...RESULT, ...TOTALS, ...columns]);
  return rows.flatMap((row) => {
    const served = row.text('duplicate_of') === '' ? startedBy(row) : undefined;
    return served === undefined ? [] : [{ row, served }];
  });
}

/** The deployment that a result's command starts; none where no shipped profile is of its model and GPUs. */
function startedBy(
  row: CsvRow<'serving_command' | 'id' | 'gpu' | 'engine' | 'engine_version'>,
): Deployment | undefined {
  // vLLM schedules ahead by default since 0.14.
  const [, minor] = row.text('engine_version').split('.');
  const isEarlier = row.text('engine') === 'vllm' && Number(minor) < 14;
  const asyncScheduling = isEarlier ? { asyncScheduling: false } : {};
  try {
    const launch = readLaunch(row.text('serving_command'), row.text('id'));
    const settings = { ...asyncScheduling, ...launch.settings };
    return resolveLaunch({ ...launch, settings }, { gpu: row.text('gpu') });
  } catch {
    return undefined;
  }
}

/** Requests of equal lengths that all arrive at once. */
export function blocks(requests: number, input: number, output: number) {
  return blocksOf(closedBatch(requests, input, output));
}
