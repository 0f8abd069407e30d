import type { LlmClient } from '@servegym/agents';
import {
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  RateLimiter,
  type StepResult,
} from '@servegym/openenv';

/** Requests to language models and real servers, as a client may cause them in an hour, or has. */
export interface CallLimits {
  /** As a limit 0: nobody is asked. */
  readonly calls: number;
  /** Prompt and completion tokens. */
  readonly tokens: number;
}

/** Choices: an episode of a real server, and some dollars of a small model, an hour. */
export const DEFAULT_CALL_LIMITS: CallLimits = { calls: 10_000, tokens: 5_000_000 };

const HOUR_MS = 3_600_000;
/** All clients together may have what so many may have. A choice. */
const CLIENTS_AT_ONCE = 4;
/** Most questions, or steps of a real server, of one client at once. A choice. */
const MOST_OF_CLIENT = 4;
/** Key of all clients together: no digest. */
const ALL = 'all';

/**
 * Counts what clients cause outside the server with the operator's keys, and refuses more. An allowance with something
 * left lets a question or a step begin; what it used is charged when it has ended.
 */
export class OutsideCalls {
  readonly #isOff: boolean;
  readonly #allowances: readonly { readonly of: keyof CallLimits; client: RateLimiter; all: RateLimiter }[];
  readonly #running = new Map<string, number>();

  constructor(limits: CallLimits) {
    this.#isOff = limits.calls === 0;
    this.#allowances = (['calls', 'tokens'] as const).map((of) => {
      const allowance = (times: number) =>
        new RateLimiter({ requests: Math.max(1, times * limits[of]), perMs: HOUR_MS });
      return { of, client: allowance(1), all: allowance(CLIENTS_AT_ONCE) };
    });
  }

  /**
   * Does work that asks outside, for a client.
   * @param used of the work, whether it succeeds or not
   * @throws EnvironmentError `CALLS_OFF`, `TOO_MANY_CALLS`
   */
  async spend<Result>(
    client: string,
    work: () => Result | Promise<Result>,
    used: () => CallLimits,
  ): Promise<Result> {
    this.#require(client);
    this.#count(client, 1);
    try {
      return await work();
    } finally {
      this.#count(client, -1);
      const use = used();
      for (const { of, client: own, all } of this.#allowances) {
        own.charge(client, use[of]);
        all.charge(ALL, use[of]);
      }
    }
  }

  /** A model that is asked for a client. */
  answererOf(model: LlmClient, client: () => string): Pick<LlmClient, 'ask'> {
    return {
      ask: (messages, schema) => {
        const { usage } = model;
        const before = { ...usage };
        const tokens = () =>
          usage.promptTokens + usage.completionTokens - before.promptTokens - before.completionTokens;
        const work = () => model.ask(messages, schema);
        return this.spend(client(), work, () => ({ calls: 1, tokens: tokens() }));
      },
    };
  }

  /**
   * An environment whose resets and steps ask a real server.
   * @param callsOf most requests of the first reset, which connects, and of a step
   */
  countedEnvironment(
    definition: EnvironmentDefinition,
    callsOf: { readonly reset: number; readonly step: number },
  ): EnvironmentDefinition {
    return {
      ...definition,
      create: (client = '') => {
        const environment = definition.create(client);
        let resetCalls = callsOf.reset;
        const counted = (calls: number, play: () => StepResult | Promise<StepResult>) => {
          let tokens = 0;
          const work = async () => {
            const result = await play();
            const { prompt = 0, completion = 0 } = (result.metadata?.tokens ?? {}) as Record<string, number>;
            tokens = prompt + completion;
            return result;
          };
          return this.spend(client, work, () => ({ calls, tokens }));
        };
        return {
          reset: (options) => {
            const calls = resetCalls;
            resetCalls = 1;
            return counted(calls, () => environment.reset(options));
          },
          step: (action) => counted(callsOf.step, () => environment.step(action)),
          state: () => environment.state(),
          close: () => environment.close?.(),
        } satisfies Environment;
      },
    };
  }

  #require(client: string): void {
    if (this.#isOff)
      throw new EnvironmentError(
        'CALLS_OFF',
        'This server asks no language model and no real server, because anybody may use it. Start it with SERVEGYM_TOKEN, or say with --limit calls=1000 how many requests each client may cause in an hour.',
      );
    const running = [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    if ((this.#running.get(client) ?? 0) >= MOST_OF_CLIENT || running >= CLIENTS_AT_ONCE * MOST_OF_CLIENT)
      throw new EnvironmentError(
        'TOO_MANY_CALLS',
        `Expected at most ${MOST_OF_CLIENT} requests of a client that ask a language model or a real server at once, and ${CLIENTS_AT_ONCE * MOST_OF_CLIENT} in all. Wait for an answer, then try again.`,
      );
    for (const { of, client: own, all } of this.#allowances) {
      const waitMs = Math.max(own.waitMs(client), all.waitMs(ALL));
      if (waitMs === 0) continue;
      throw new EnvironmentError(
        'TOO_MANY_CALLS',
        `The ${of} to language models and real servers of this hour are used up: ${own.description} to each client, ${all.description} to all. Try again in ${Math.ceil(waitMs / 1000)} s.`,
      );
    }
  }

  #count(client: string, change: number): void {
    const count = (this.#running.get(client) ?? 0) + change;
    if (count === 0) this.#running.delete(client);
    else this.#running.set(client, count);
  }
}
