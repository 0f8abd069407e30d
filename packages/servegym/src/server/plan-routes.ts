import { httpProblem, type OpenEnvServer } from '@servegym/openenv';
import {
  ASSUMPTIONS,
  type FleetPlan,
  longestRequest,
  parseSlo,
  planFleet,
  planResult,
  rankPlans,
  splitTrace,
  TUNE_JOB_KINDS,
  TuningError,
  traceWithin,
} from '@servegym/operators';
import { listProfiles } from '@servegym/profiles';
import { stream } from 'hono/streaming';
import { z } from 'zod';
import { withPrices } from '../cli/arguments/deployment.ts';
import type { BackgroundWork } from './background-work.ts';
import { PARSE_JOB_KINDS, parseOnThread } from './parse-trace-job.ts';
import { described } from './routes.ts';

/** Requests of the trace that are simulated. `servegym plan` takes 8,000. */
const SIMULATED_REQUESTS = 2000;
const MOST_ENGINES = 64;
const SEED = 0;

const planRequest = z
  .strictObject({
    trace: z.string().min(1).describe('The text of a trace: CSV or JSON lines'),
    name: z.string().max(200).default('trace.csv').describe('Name of its file'),
    model: z.string().max(200).describe('One of `models`'),
    gpus: z
      .array(z.string())
      .max(100)
      .default([])
      .describe('GPUs to choose from, by the names that the model has in `models`; none: all'),
    slo: z
      .string()
      .max(200)
      .default('ttft_p99=1s,tpot_p99=50ms')
      .describe('ttft, tpot or e2e, each with a percentile or the mean'),
    quality: z
      .number()
      .min(0)
      .max(1)
      .default(0.98)
      .describe('Least accuracy of the weights, relative to FP16'),
    allow: z
      .array(z.enum(ASSUMPTIONS))
      .max(20)
      .default([])
      .describe('What plans may take for granted beside measurements'),
    rate_scale: z.number().positive().max(1000).default(1).describe('Plan for this many times the traffic'),
  })
  .meta({ title: 'PlanRequest' });

/** Time between two lines that say how the search goes. */
const LEAST_GAP_MS = 250;

const models = z.object({ models: z.array(z.object({ name: z.string(), gpus: z.array(z.string()) })) });

/**
 * `GET /plans/models` and `POST /plans`: what to buy for a trace and an SLO, as `servegym plan` answers it, in lines of
 * JSON as the plans of each profile are found. One plan at a time.
 */
export function mountPlanRoutes(server: OpenEnvServer, work: BackgroundWork): void {
  server.addRoute({ ...described('plan_models_get'), answer: models }, () => ({ models: knownModels() }));
  server.addRoute(
    {
      ...described('plan_post'),
      body: planRequest,
      answer: { mediaType: 'application/x-ndjson' },
      admit: () => work.requireLendable(),
    },
    async (context, { body }) => {
      const { slo, profiles } = await readChoices(body);
      const caller = server.requestSessions.caller(context);
      const left = new AbortController();
      const signal = AbortSignal.any([caller.signal, left.signal]);
      const lend = work.lend({ ...TUNE_JOB_KINDS, ...PARSE_JOB_KINDS }, { name: caller.name, signal });
      const { trace: text, name, rate_scale: rateScale } = body;
      const read = Promise.withResolvers<void>();
      const opened = Promise.withResolvers<(line: object) => Promise<unknown>>();
      const planned = lend(async (jobs) => {
        const whole = await parseOnThread(jobs, { text, name, rateScale });
        const { trace, refused } = traceWithin(whole, longestRequest({ profile: profiles[0] }));
        const split = splitTrace(trace, SIMULATED_REQUESTS);
        read.resolve();
        const write = await opened.promise;
        let toldAt = 0;
        const found: FleetPlan[] = [];
        return planFleet(
          jobs,
          profiles,
          { trace, split, refused },
          {
            ...{ slo, minQuality: body.quality, mostEngines: MOST_ENGINES, seed: SEED, allow: body.allow },
            onSearch(search) {
              if (performance.now() < toldAt + LEAST_GAP_MS) return;
              toldAt = performance.now();
              void write({ search });
            },
            onPlans(plans) {
              found.push(...plans);
              const sections = planResult.sections(rankPlans(found, body.allow));
              void write({ plans: plans.map(planResult.planJson), sections });
            },
            onProgress: (done, of) => void write({ done, of }),
          },
        );
      });
      await Promise.race([read.promise, planned]).catch((error) => {
        const isOfTrace = error.isInputError === true && !error.code.startsWith('WORK_');
        throw isOfTrace ? httpProblem(422, error.message, error.code) : error;
      });
      context.header('content-type', 'application/x-ndjson');
      context.header('cache-control', 'no-store');
      return stream(context, async (out) => {
        out.onAbort(() => left.abort(new Error('The client has left')));
        const write = (line: object) => out.write(`${JSON.stringify(line)}\n`);
        opened.resolve(write);
        try {
          const result = await planned;
          await write({ result: planResult.json(result), sections: planResult.sections(result, result) });
        } catch (error) {
          const { message: detail, code } = error as { readonly message: string; readonly code?: string };
          await write({ error: { detail, code } });
        }
      });
    },
  );
}

function knownModels(): z.infer<typeof models>['models'] {
  const byModel = Map.groupBy(listProfiles(), ({ model }) => model.name);
  return [...byModel]
    .map(([name, profiles]) => ({ name, gpus: [...new Set(profiles.map(({ gpu }) => gpu.name))].sort() }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @throws HTTPException that says what is wrong with the request */
async function readChoices({ model, gpus, slo: bounds }: z.output<typeof planRequest>) {
  const ofModel = listProfiles().filter((profile) => profile.model.name === model);
  const known = new Set(ofModel.map(({ gpu }) => gpu.name));
  const unknown = gpus.find((gpu) => !known.has(gpu));
  if (ofModel.length === 0 || unknown !== undefined) {
    const what = ofModel.length === 0 ? `model, got ${model}` : `GPU of ${model}, got ${unknown}`;
    const detail = `Expected a ${what.slice(0, 200)}. GET /plans/models has the names.`;
    throw httpProblem(422, detail, 'UNKNOWN_MODEL');
  }
  try {
    const slo = parseSlo(bounds);
    const chosen = ofModel.filter(({ gpu }) => gpus.length === 0 || gpus.includes(gpu.name));
    const { profiles } = await withPrices(chosen, {});
    return { slo, profiles };
  } catch (error) {
    if (error instanceof TuningError) throw httpProblem(422, error.message, error.code);
    throw error;
  }
}
