import { batch, computed, signal } from '@preact/signals';
import type { planFleet, planResult } from '@servegym/operators';
import type { Section } from '@servegym/operators/report';
import { ApiError, createTransport } from '../api/transport.ts';
import type { Fields } from '../api/wire.ts';

/** A model that the server can plan for, and the GPUs that it knows for it. */
export interface PlannedModel {
  readonly name: string;
  readonly gpus: readonly string[];
}

/** All plans of a request, as `servegym plan --json` prints them. */
type PlanResult = ReturnType<typeof planResult.json>;

/** How the search of a plan goes. */
export type SearchState = Parameters<NonNullable<Parameters<typeof planFleet>[3]['onSearch']>>[0];

/** What the page shows of an answer. */
interface PlanAnswer {
  readonly sections: readonly Section[];
  /** It is an example, which nobody asked for. */
  readonly isExample?: boolean;
  readonly isStopped?: boolean;
  /** Plans found so far. */
  readonly found: number;
  readonly search?: SearchState;
  /** Price of what looked cheapest, by the simulations that were done, USD an hour. */
  readonly course: readonly (readonly [simulations: number, usdPerHour: number])[];
  /** How many of the kinds of engines (a profile with a precision) are done. */
  readonly progress: readonly [done: number, of: number];
  /** All plans, once it is complete. */
  readonly result?: PlanResult;
}

/** A line of an answer. */
interface PlanPart extends Partial<Pick<PlanAnswer, 'sections' | 'search' | 'result'>> {
  readonly error?: { readonly detail: string; readonly code: string };
  readonly plans?: readonly object[];
  readonly done: number;
  readonly of: number;
}

const NOTHING: PlanAnswer = { sections: [], found: 0, course: [], progress: [0, 0] };

/** The lines of a stream of text. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>;
  const reader = stream.pipeThrough(decoder).getReader();
  let rest = '';
  for (;;) {
    const { done, value = '' } = await reader.read();
    const lines = (rest + value).split('\n');
    rest = done ? '' : lines.pop()!;
    yield* lines.filter((line) => line !== '');
    if (done) return;
  }
}

/** Requests of traffic that is drawn. */
const DRAWN_REQUESTS = 2000;

/** A rate and the median lengths, for those who have no trace at hand. */
export interface DrawnTraffic {
  readonly perSecond: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Requests as a trace in CSV: Poisson arrivals, log-normal lengths; always the same. */
export function drawnTrace({ perSecond, inputTokens, outputTokens }: DrawnTraffic): string {
  let state = 1;
  // Park and Miller's generator.
  const uniform = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const length = (median: number, sigma: number) => Math.round(median * Math.exp(sigma * normal())) + 1;
  let seconds = 0;
  const rows = Array.from({ length: DRAWN_REQUESTS }, () => {
    seconds -= Math.log(uniform()) / perSecond;
    return `${seconds.toFixed(6)},${length(inputTokens, 0.8)},${length(outputTokens, 0.7)}`;
  });
  return `arrival_s,input_tokens,output_tokens\n${rows.join('\n')}\n`;
}

/** Model that is chosen at first, where the server knows it. */
const FIRST_MODEL = 'Llama-3-8B';

/** Limits of the SLO, as a person types them. */
export interface TypedLimits {
  readonly ttftS: string;
  readonly tpotMs: string;
  readonly perSecond: string;
  readonly inputTokens: string;
  readonly outputTokens: string;
}

/** What a person asks for on the page for plans, and what the server has answered. */
export class Planning {
  readonly models = signal<readonly PlannedModel[]>([]);
  readonly model = signal('');
  /** GPUs that are not to be taken. */
  readonly leftOut = signal<ReadonlySet<string>>(new Set());
  readonly trace = signal<{ readonly name: string; readonly text: string }>();
  /** The last one; before, plans for the traffic that the form begins with. */
  readonly answer = signal(NOTHING);
  readonly underWay = signal<AbortController>();
  readonly fault = signal('');
  readonly needsToken = signal(false);
  readonly gpus = computed(() => this.models.value.find(({ name }) => name === this.model.value)?.gpus ?? []);
  readonly taken = computed(() => this.gpus.value.filter((gpu) => !this.leftOut.value.has(gpu)));
  readonly #server: ReturnType<typeof createTransport>;

  /** @param root address of the server's API, which ends in a slash */
  constructor(root: URL) {
    this.#server = createTransport(root);
    void this.#readModels();
    void import('./example-plan.json', { with: { type: 'json' } }).then(({ default: example }) => {
      this.#show({ sections: example as readonly Section[], isExample: true });
    });
  }

  async #readModels(): Promise<void> {
    try {
      const models = (await this.#server.ask('plans/models')).models as readonly PlannedModel[];
      batch(() => {
        this.models.value = models;
        this.model.value = (models.find(({ name }) => name === FIRST_MODEL) ?? models[0]).name;
        this.fault.value = '';
        this.needsToken.value = false;
      });
    } catch (error) {
      this.#tell(error);
    }
  }

  #show(more: Partial<PlanAnswer>): void {
    this.answer.value = { ...this.answer.value, ...more };
  }

  #tell(error: unknown): void {
    this.needsToken.value = error instanceof ApiError && error.isUnauthorized;
    this.fault.value = (error as Error).message;
  }

  enterToken(token: string): void {
    this.#server.authorize(token);
    void this.#readModels();
  }

  async start({ ttftS, tpotMs, ...typed }: TypedLimits): Promise<void> {
    const { model, taken, gpus } = this;
    const { perSecond, inputTokens, outputTokens } = typed;
    const name = `${inputTokens}:${outputTokens}@${perSecond}/s.csv`;
    const drawn = { perSecond: +perSecond, inputTokens: +inputTokens, outputTokens: +outputTokens };
    const trace = this.trace.value ?? { name, text: drawnTrace(drawn) };
    const stop = new AbortController();
    batch(() => {
      this.underWay.value = stop;
      this.answer.value = NOTHING;
      this.fault.value = '';
    });
    const request = {
      trace: trace.text,
      name: trace.name,
      model: model.value,
      // None: all.
      gpus: taken.value.length === gpus.value.length ? [] : taken.value,
      slo: `ttft_p99=${ttftS}s,tpot_p99=${tpotMs}ms`,
    };
    try {
      await this.#ask(request, stop.signal);
    } catch (error) {
      if (stop.signal.aborted) this.#show({ isStopped: true });
      else this.#tell(error);
    }
    this.underWay.value = undefined;
  }

  /** Shows what comes until the answer is complete. @throws ApiError */
  async #ask(request: Fields, within: AbortSignal): Promise<void> {
    for await (const line of linesOf(await this.#server.stream('plans', request, within))) {
      const { error, plans = [], done, of, ...told }: PlanPart = JSON.parse(line);
      if (error) throw new ApiError('refused', 200, error.detail, error.code);
      const { found, course } = this.answer.value;
      const { simulations = 0, best } = told.search ?? {};
      this.#show({
        ...told,
        found: found + plans.length,
        course: best ? [...course, [simulations, best.usdPerHour]] : course,
        ...(of && { progress: [done, of] }),
      });
      if (told.result) return;
    }
    throw new ApiError('unreachable', 0, 'The answer of the server ends before the plan is done.');
  }
}
