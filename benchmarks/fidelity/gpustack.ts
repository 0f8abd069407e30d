import { readFile } from 'node:fs/promises';
import type { Deployment } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { findGpu, profileFromTables } from '@servegym/profiles';
import { closedBatch, type EngineProfile, RandomStream, type Trace } from '@servegym/simulator';
import { resolveLaunch } from '../../packages/operators/src/deployment/deployment.ts';
import { readLaunch } from '../../packages/operators/src/deployment/launch.ts';
import { type CsvRow, readCsv } from '../../packages/profiles/src/tables/read-csv.ts';
import { divisionOf } from '../../packages/servegym/src/cli/arguments/deployment.ts';

const RESULT = [
  ...(['id', 'gpu', 'engine', 'engine_version', 'serving_command', 'dataset'] as const),
  ...(['duplicate_of', 'duration_s'] as const),
] as const;
const TOTALS = ['successful_requests', 'total_input_tokens', 'total_output_tokens'] as const;

/**
 * Results of gpustack's performance lab with what their commands start, on shipped profiles; with a folder of kernel `tables`, on those
 * of the engine and version that each page names. Results without a profile are left out, and those that `only` leaves out.
 */
export async function readResults<const Column extends string>(
  data: string,
  columns: readonly Column[],
  { tables, only = () => true }: { readonly tables?: string; only?(id: string): boolean } = {},
) {
  const [file] = findReferenceFiles(data, [REFERENCE_DATA.flagResults]);
  const rows = readCsv(await readFile(file, 'utf8'), file, [...RESULT, ...TOTALS, ...columns]);
  const made = new Map<string, Promise<EngineProfile>>();
  const results: { row: (typeof rows)[number]; served: Deployment }[] = [];
  for (const row of rows) {
    const isRead = row.text('duplicate_of') === '' && only(row.text('id'));
    const served = isRead ? await startedBy(row, tables, made) : undefined;
    if (served !== undefined) results.push({ row, served });
  }
  return results;
}

/** The deployment that a result's command starts; none where there is no profile of its model and GPUs. */
async function startedBy(
  row: CsvRow<'serving_command' | 'id' | 'gpu' | 'engine' | 'engine_version'>,
  tables: string | undefined,
  made: Map<string, Promise<EngineProfile>>,
): Promise<Deployment | undefined> {
  const [engine, version, gpu] = (['engine', 'engine_version', 'gpu'] as const).map((name) => row.text(name));
  // vLLM schedules ahead by default since 0.14.
  const isEarlier = engine === 'vllm' && Number(version.split('.')[1]) < 14;
  try {
    const launch = readLaunch(row.text('serving_command'), row.text('id'));
    const { model } = launch;
    const settings = { ...(isEarlier && { asyncScheduling: false }), ...launch.settings };
    if (tables === undefined || model === null) return resolveLaunch({ ...launch, settings }, { gpu });
    const options = { gpu: findGpu(gpu), model, ...divisionOf(settings), command: '' };
    const key = JSON.stringify([engine, version, options]);
    const making =
      made.get(key) ??
      profileFromTables(tables, `${engine}-${version}`, options).then(({ profile }) => profile);
    made.set(key, making);
    return resolveLaunch({ ...launch, settings }, { gpu, profile: await making });
  } catch {
    return undefined;
  }
}

/**
 * The requests of a result, which all arrive at once, with its mean lengths. Those of ShareGPT are far from equal: its outputs are drawn
 * from an exponential distribution, a choice.
 */
export function requestsOf(row: CsvRow<(typeof TOTALS)[number] | 'dataset'>): Trace {
  const requests = row.number('successful_requests');
  const [input, output] = (['total_input_tokens', 'total_output_tokens'] as const).map((of) =>
    Math.round(row.number(of) / requests),
  );
  const equal = closedBatch(requests, input, output);
  if (row.text('dataset') !== 'sharegpt') return equal;
  const random = new RandomStream(0, 'lengths');
  const outputTokens = equal.outputTokens.map((mean) => Math.max(1, Math.round(random.exponential(mean))));
  return { ...equal, outputTokens };
}
