import { batch, computed, signal } from '@preact/signals';
import type { planResult } from '@servegym/operators';
import { ApiError, refusal } from '../api/api-error.ts';
import { keepToken, keptToken } from '../state/kept.ts';

/** A model that the server can plan for, and the GPUs that it knows for it. */
export interface PlannedModel {
  readonly name: string;
  readonly gpus: readonly string[];
}

/** A plan as `servegym plan --json` prints it. */
export type Plan = ReturnType<typeof planResult.planJson>;
/** All plans of a request, the cheapest first. */
export type PlanResult = ReturnType<typeof planResult.json>;

/** Engines of a plan in words, which no other plan of the same answer has. */
export function enginesText({ pools }: Plan): string {
  return pools
    .map(({ role, profile, settings, engines }) =>
      [`${engines} × ${profile}`, settings.quantization, ...(role === 'all' ? [] : [`to ${role}`])].join(
        ', ',
      ),
    )
    .join(' + ');
}

export type Settings = Plan['settings'];

/** Settings that differ from the defaults, or all of them. */
export function settingsText(settings: Settings, defaults?: Settings): string {
  const parts = Object.entries(settings)
    .filter(([name, value]) => (defaults === undefined ? value !== false : value !== defaults[name]))
    .map(([name, value]) => `${name} ${typeof value === 'boolean' ? (value ? 'on' : 'off') : value}`);
  return parts.length === 0 ? 'as vLLM’s defaults' : parts.join(', ');
}

/** A client for the server whose API stands under `root`, which ends in a slash. */
export function createPlanClient(root: URL) {
  let token = keptToken();
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    const response = await fetch(new URL(path, root), { ...init, headers }).catch((error) => {
      if (init.signal?.aborted) throw error;
      throw new ApiError('unreachable', 0, 'The server does not answer.');
    });
    if (response.ok) return response;
    throw refusal(response.status, await response.json().catch(() => undefined));
  }
  return {
    /** The token that requests carry from now on. */
    authorize(text: string): void {
      token = text;
      keepToken(text);
    },
    async models(): Promise<readonly PlannedModel[]> {
      return (await (await send('plans/models')).json()).models;
    },
    /** Answers with the complete result; until then `onPart` gets the plans found since, and the profiles done. */
    async plan(
      request: object,
      onPart: (part: { plans?: readonly Plan[]; done: number; of: number }) => void,
      signal: AbortSignal,
    ): Promise<PlanResult> {
      const response = await send('plans', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(request),
        signal,
      });
      for await (const line of linesOf(response.body!)) {
        const { result, error, ...part } = JSON.parse(line);
        if (error) throw new ApiError('refused', 200, error.detail, error.code);
        if (result) return result;
        onPart(part);
      }
      throw new ApiError('unreachable', 0, 'The answer of the server ends before the plan is done.');
    },
  };
}

/** The lines of a stream of text. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop()!;
    yield* lines.filter((line) => line !== '');
  }
  if (rest !== '') yield rest;
}

/** The plans than which no other is both cheaper and faster to the first token, the cheapest first. */
export function paretoFront(plans: readonly Plan[]): Plan[] {
  const byPrice = [...plans].sort((a, b) => a.usd_per_hour - b.usd_per_hour || a.ttft_p99_ms - b.ttft_p99_ms);
  const front: Plan[] = [];
  for (const plan of byPrice) {
    const fastest = front.at(-1)?.ttft_p99_ms ?? Number.POSITIVE_INFINITY;
    if (plan.ttft_p99_ms < fastest) front.push(plan);
  }
  return front;
}

/** Requests of the example, a second. */
const EXAMPLE_RATE = 4;
const EXAMPLE_REQUESTS = 2000;

/** A made-up trace, for those who have none at hand: Poisson arrivals, log-normal lengths; always the same. */
export function exampleTrace(): string {
  let state = 1;
  // Park and Miller's generator.
  const uniform = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const length = (median: number, sigma: number) => Math.round(median * Math.exp(sigma * normal())) + 1;
  let seconds = 0;
  const rows = Array.from({ length: EXAMPLE_REQUESTS }, () => {
    seconds -= Math.log(uniform()) / EXAMPLE_RATE;
    return `${seconds.toFixed(3)},${length(700, 0.8)},${length(150, 0.7)}`;
  });
  return `arrival_s,input_tokens,output_tokens\n${rows.join('\n')}\n`;
}

/** Model that is chosen at first, where the server knows it. */
const FIRST_MODEL = 'Llama-3-8B';

/** What a person asks for on the page for plans, and what the server has answered. */
export type Planning = ReturnType<typeof createPlanning>;

export function createPlanning(client: ReturnType<typeof createPlanClient>) {
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
      // None: all.
      gpus: taken.value.length === gpus.value.length ? [] : taken.value,
      slo: `ttft_p99=${ttftS.value}s,tpot_p99=${tpotMs.value}ms`,
    };
    try {
      result.value = await client.plan(
        request,
        ({ plans: found = [], done, of }) => {
          plans.value = [...plans.value, ...found];
          if (of) progress.value = [done, of];
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
