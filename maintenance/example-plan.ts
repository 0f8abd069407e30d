// `npx node maintenance/example-plan.ts`: plans the example of the console's page for plans again, into
// packages/console/src/plan/example-plan.json.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LocalJobs } from '@servegym/jobs';
import { parseSlo, planFleet, planResult, splitTrace, TUNE_JOB_KINDS } from '@servegym/operators';
import { atListPrice, listProfiles } from '@servegym/profiles';
import { parseTrace } from '@servegym/simulator';
import { drawnTrace } from '../packages/console/src/plan/plan-client.ts';

export const EXAMPLE = join(dirname(import.meta.dirname), 'packages/console/src/plan/example-plan.json');
/** Few, so that a test can plan again. A choice. */
const PROFILES = ['a100-40gb-llama-3-8b', 'l40s-48gb-llama-3-8b', 'h100-80gb-llama-3-8b'];

/** The plan for the traffic and the SLO that the form begins with. */
export async function examplePlan() {
  const trace = parseTrace(drawnTrace({ perSecond: 4, inputTokens: 700, outputTokens: 150 }), 'example.csv');
  const profiles = listProfiles().filter(({ name }) => PROFILES.includes(name));
  const jobs = new LocalJobs({ kinds: TUNE_JOB_KINDS, threads: 2 });
  try {
    const split = splitTrace(trace, trace.arrivalMs.length);
    const result = await planFleet(
      jobs,
      profiles.map(atListPrice),
      { trace, split, refused: { requests: 0, longest: 0, limit: 1 } },
      {
        ...{ slo: parseSlo('ttft_p99=1s,tpot_p99=50ms'), minQuality: 0.98, mostEngines: 64 },
        seed: 0,
        allow: [],
      },
    );
    return JSON.parse(JSON.stringify(planResult.sections(result, result)));
  } finally {
    await jobs.close();
  }
}

if (import.meta.main) writeFileSync(EXAMPLE, `${JSON.stringify(await examplePlan())}\n`);
