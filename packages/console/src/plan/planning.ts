import { batch, computed, signal } from '@preact/signals';
import { ApiError } from '../api/api-error.ts';
import type { Plan, PlanClient, PlannedModel, PlanResult } from './plan-client.ts';

/** Model that is chosen at first, where the server knows it. */
const FIRST_MODEL = 'Llama-3-8B';

/** What a person asks for on the page for plans, and what the server has answered. */
export type Planning = ReturnType<typeof createPlanning>;

export function createPlanning(client: PlanClient) {
  const models = signal<readonly PlannedModel[]>([]);
  const model = signal('');
  /** GPUs that are not to be taken. */
  const leftOut = signal<ReadonlySet<string>>(new Set());
  const trace = signal<{ readonly name: string; readonly text: string }>();
  const ttftS = signal('1');
  const tpotMs = signal('50');
  const plans = signal<readonly Plan[]>([]);
  const progress = signal<readonly [done: number, of: number]>([0, 0]);
  const result = signal<PlanResult>();
  const underWay = signal<AbortController>();
  const isStopped = signal(false);
  const fault = signal('');
  const needsToken = signal(false);
  const gpus = computed(() => models.value.find(({ name }) => name === model.value)?.gpus ?? []);
  const taken = computed(() => gpus.value.filter((gpu) => !leftOut.value.has(gpu)));

  function tell(error: unknown): void {
    needsToken.value = error instanceof ApiError && error.isUnauthorized;
    fault.value = (error as Error).message;
  }

  async function readModels(): Promise<void> {
    try {
      const known = await client.models();
      batch(() => {
        models.value = known;
        model.value = (known.find(({ name }) => name === FIRST_MODEL) ?? known[0]).name;
        fault.value = '';
        needsToken.value = false;
      });
    } catch (error) {
      tell(error);
    }
  }

  async function start(): Promise<void> {
    if (!trace.value) {
      fault.value = 'Drop a trace first, or take the example.';
      return;
    }
    const stop = new AbortController();
    batch(() => {
      underWay.value = stop;
      plans.value = [];
      progress.value = [0, 0];
      result.value = undefined;
      fault.value = '';
      isStopped.value = false;
    });
    const request = {
      trace: trace.value.text,
      name: trace.value.name,
      model: model.value,
      gpus: taken.value.length === gpus.value.length ? [] : taken.value,
      slo: `ttft_p99=${ttftS.value}s,tpot_p99=${tpotMs.value}ms`,
    };
    try {
      result.value = await client.plan(
        request,
        {
          onPlans(found) {
            plans.value = [...plans.value, ...found];
          },
          onProgress(done, of) {
            progress.value = [done, of];
          },
        },
        stop.signal,
      );
      plans.value = result.value.plans;
    } catch (error) {
      if (stop.signal.aborted) isStopped.value = true;
      else tell(error);
    }
    underWay.value = undefined;
  }

  return {
    ...{ models, model, leftOut, trace, ttftS, tpotMs },
    ...{ plans, progress, result, underWay, isStopped, fault, needsToken },
    gpus,
    taken,
    readModels,
    start,
    enterToken(token: string): void {
      client.authorize(token);
      void readModels();
    },
  };
}
