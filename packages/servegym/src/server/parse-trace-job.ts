import { deserialize, serialize } from 'node:v8';
import type { JobEngine, JobKinds, Json } from '@servegym/jobs';
import { parseTrace, scaleRate, type Trace } from '@servegym/simulator';

interface TraceText {
  readonly text: string;
  readonly name: string;
  readonly rateScale: number;
}

/** The job `parse-trace`: on the event loop a hostile text would stop all clients. */
export const PARSE_JOB_KINDS: JobKinds = {
  'parse-trace': new URL('parse-trace-job.ts', import.meta.url).href,
};

export function runJob(input: Json): Json {
  const { text, name, rateScale } = input as unknown as TraceText;
  return serialize(scaleRate(parseTrace(text, name), rateScale)).toString('base64');
}

/** Reads a trace on a thread. @throws JobError */
export async function parseOnThread(jobs: JobEngine, trace: TraceText): Promise<Trace> {
  const [bytes] = await jobs.run([{ kind: 'parse-trace', input: { ...trace } }]);
  return deserialize(Buffer.from(bytes as string, 'base64'));
}
