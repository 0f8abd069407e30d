import type { planResult } from '@servegym/operators';
import { ApiError, errorCode, errorText } from '../api/api-error.ts';
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

interface PlanRequest {
  /** The text of the trace, and the name of its file. */
  readonly trace: string;
  readonly name: string;
  readonly model: string;
  /** None: all. */
  readonly gpus: readonly string[];
  readonly slo: string;
}

/** Events of the server while it plans. */
interface PlanEvents {
  onPlans(plans: readonly Plan[]): void;
  onProgress(done: number, of: number): void;
}

/** Requests of the page to the server. Both throw `ApiError`. */
export interface PlanClient {
  models(): Promise<readonly PlannedModel[]>;
  plan(request: PlanRequest, events: PlanEvents, signal: AbortSignal): Promise<PlanResult>;
  /** The token that requests carry from now on. */
  authorize(token: string): void;
}

/** A client for the server whose API stands under `root`, which ends in a slash. */
export function createPlanClient(root: URL): PlanClient {
  let token = keptToken();
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    const response = await fetch(new URL(path, root), { ...init, headers }).catch((error) => {
      if (init.signal?.aborted) throw error;
      throw new ApiError('unreachable', 0, 'The server does not answer.');
    });
    if (response.ok) return response;
    const answer: unknown = await response.json().catch(() => undefined);
    const code = errorCode(answer);
    throw new ApiError(
      'refused',
      response.status,
      errorText(answer) ?? `The server answered ${response.status}.`,
      {
        ...(code !== undefined && { code }),
      },
    );
  }
  return {
    authorize(text) {
      token = text;
      keepToken(text);
    },
    models: async () => (await (await send('plans/models')).json()).models,
    async plan(request, { onPlans, onProgress }, signal) {
      const response = await send('plans', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(request),
        signal,
      });
      for await (const line of linesOf(response.body!)) {
        const { plans, done, of, result, error } = JSON.parse(line);
        if (error) throw new ApiError('refused', 200, error.detail, { code: error.code });
        if (plans) onPlans(plans);
        if (of) onProgress(done, of);
        if (result) return result;
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
