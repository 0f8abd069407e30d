import { z } from 'zod';
import type { Environment, EnvironmentDefinition, ResetOptions, StepResult } from '../protocol/definition.ts';
import type { JsonObject } from '../protocol/read-json.ts';
import type { ResetOptionsReader } from '../protocol/reset-options.ts';
import { type ActionReader, toJsonSchema } from '../protocol/schemas.ts';
import { InvalidInputError, readAt, readInput } from '../protocol/validation-issues.ts';
import { createInstance } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { Turn } from '../sessions/turns.ts';
import { FloatLayout } from './float-layout.ts';

export interface VectorParts {
  readonly definition: EnvironmentDefinition<unknown, object, object>;
  readonly sessions: SessionRegistry;
  readonly readAction: ActionReader<unknown>;
  readonly readResetOptions: ResetOptionsReader;
}

const resetRequest = z.strictObject({
  count: z.int().min(1).max(65_536),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional(),
  options: z.record(z.string(), z.unknown()).default({}),
  format: z.enum(['json', 'float32']).default('json'),
});

interface Layouts {
  readonly action: FloatLayout;
  readonly observation: FloatLayout;
}

type Reply = string | Uint8Array;

/**
 * The vector extension on one socket: `vector_reset` makes and resets N environments, `vector_step` steps them all.
 * Every environment takes a slot of the server's sessions. They are not kept in a store.
 */
export class VectorConversation {
  readonly #parts: VectorParts;
  /** Digest of who is at the other end. */
  readonly #client: string;
  #environments: VectorEnvironments | null = null;
  #layouts: Layouts | null = null;
  #releaseSlots: () => void = () => {};

  constructor(parts: VectorParts, client: string) {
    this.#parts = parts;
    this.#client = client;
  }

  /** Answers `vector_reset`. @throws InvalidInputError, OpenEnvError, EnvironmentError */
  reset(data: JsonObject): Reply | Promise<Reply> {
    const { count, seed, options, format } = readInput(resetRequest, data);
    const { sessions } = this.#parts;
    const base = this.#readOptions(options, seed);
    const layouts = format === 'float32' ? this.#makeLayouts() : null;
    this.close();
    this.#environments = this.#open(count, base);
    this.#layouts = layouts;
    const toReply = (result: VectorResult) => {
      sessions.counts.resets += count;
      return vectorText(result, layouts);
    };
    const result = this.#environments.reset();
    return result instanceof Promise ? result.then(toReply) : toReply(result);
  }

  /** Answers `vector_step`. @throws InvalidInputError */
  step(data: JsonObject): Reply | Promise<Reply> {
    const environments = this.#opened();
    const { actions, ...extra } = data;
    const [unknown] = Object.keys(extra);
    if (unknown !== undefined)
      throw InvalidInputError.of('extra_forbidden', [unknown], 'Extra inputs are not permitted');
    if (!Array.isArray(actions) || actions.length !== environments.size) {
      throw InvalidInputError.of(
        'list_type',
        ['actions'],
        `Input should be a list of ${environments.size} actions`,
      );
    }
    return this.#play(
      (index) => actions[index],
      (result) => vectorText(result, null),
    );
  }

  /** Answers a binary frame: the actions of all environments as rows of float32. @throws InvalidInputError */
  stepBinary(frame: Uint8Array): Reply | Promise<Reply> {
    const environments = this.#opened();
    const layouts = this.#layouts;
    if (!layouts)
      throw InvalidInputError.of(
        'value_error',
        [],
        "Binary frames need a vector_reset with the format 'float32'",
      );
    const { action, observation } = layouts;
    const bytes = environments.size * action.width * Float32Array.BYTES_PER_ELEMENT;
    if (frame.byteLength !== bytes) {
      throw InvalidInputError.of(
        'value_error',
        [],
        `Input should be ${environments.size} rows of ${action.width} float32 (${bytes} bytes), not ${frame.byteLength} bytes`,
      );
    }
    // Copied: a frame need not begin at a multiple of four bytes in its buffer, as a Float32Array must.
    const rows = new Float32Array(new Uint8Array(frame).buffer);
    return this.#play(
      (index) => action.read(rows, index * action.width),
      (result) => vectorBytes(result, observation),
    );
  }

  /** Frees the environments and their slots. */
  close(): void {
    const environments = this.#environments;
    if (!environments) return;
    this.#environments = null;
    this.#releaseSlots();
    void environments.close();
  }

  #opened(): VectorEnvironments {
    if (this.#environments) return this.#environments;
    throw InvalidInputError.of('value_error', [], 'There are no environments yet; send vector_reset first');
  }

  #open(count: number, base: ReturnType<ResetOptionsReader>): VectorEnvironments {
    const { definition, sessions } = this.#parts;
    const releaseSlots = sessions.reserve(count, base);
    try {
      const environments = Array.from({ length: count }, () => createInstance(definition));
      const options = environments.map((_, index) => ({ ...base, seed: (base.seed ?? 0) + index }));
      this.#releaseSlots = releaseSlots;
      return new VectorEnvironments(environments, options, this.#client);
    } catch (error) {
      releaseSlots();
      throw error;
    }
  }

  #readOptions(options: JsonObject, seed: number | undefined) {
    return readAt(['options'], () =>
      this.#parts.readResetOptions(seed === undefined ? options : { ...options, seed }),
    );
  }

  #makeLayouts(): Layouts {
    const { action, observation } = this.#parts.definition;
    try {
      return {
        action: FloatLayout.whole(toJsonSchema(action, 'input')),
        observation: FloatLayout.withoutTexts(toJsonSchema(observation, 'output')),
      };
    } catch (error) {
      throw InvalidInputError.of('value_error', ['format'], (error as Error).message);
    }
  }

  #play(
    actionOf: (index: number) => unknown,
    toReply: (result: VectorResult) => Reply,
  ): Reply | Promise<Reply> {
    const environments = this.#opened();
    const { readAction } = this.#parts;
    const actions: unknown[] = [];
    // All actions are read before the first is played, so that a mistake in one changes nothing.
    for (let index = 0; index < environments.size; index++) {
      if (environments.awaitsReset(index)) {
        actions.push(null);
        continue;
      }
      actions.push(readAt(['actions', index], () => readAction(actionOf(index))));
    }
    try {
      const result = environments.step(actions);
      this.#parts.sessions.counts.steps += environments.size;
      return result instanceof Promise
        ? result.then(toReply, (error) => this.#abandon(error))
        : toReply(result);
    } catch (error) {
      return this.#abandon(error);
    }
  }

  /** Some environments have stepped and some have not: they cannot go on together. */
  #abandon(error: unknown): never {
    this.close();
    throw error;
  }
}

function vectorText(result: VectorResult, layouts: Layouts | null): string {
  const data = layouts
    ? { ...result, layout: { action: layouts.action.names, observation: layouts.observation.names } }
    : result;
  return `{"type":"vector","data":${JSON.stringify(data)}}`;
}

/** Rewards, then dones as 0 or 1, then a row of observation for each environment; little-endian float32. */
function vectorBytes({ observations, rewards, dones }: VectorResult, layout: FloatLayout): Uint8Array {
  const { length } = observations;
  const floats = new Float32Array(length * (2 + layout.width));
  floats.set(rewards);
  for (let index = 0; index < length; index++) {
    floats[length + index] = dones[index] ? 1 : 0;
    layout.write(observations[index], floats, 2 * length + index * layout.width);
  }
  return new Uint8Array(floats.buffer);
}

const SEEDS = 2 ** 32;

/** Resets or steps one environment. */
type Play = (index: number) => StepResult<object> | Promise<StepResult<object>>;

/** Result of a reset or step of all environments, an entry for each. */
export interface VectorResult {
  readonly observations: object[];
  /** 0 where an episode has just been started. */
  readonly rewards: number[];
  readonly dones: boolean[];
}

/**
 * Several instances of one environment that step together. When an episode has ended, the next step of its environment
 * ignores the action and starts the next episode instead (Gymnasium's `AutoresetMode.NEXT_STEP`). With the base seed s
 * and n environments, episode k of environment i has the seed (s + k n + i) mod 2^32.
 */
export class VectorEnvironments {
  readonly #environments: readonly Environment<unknown, object, object>[];
  readonly #options: readonly ResetOptions[];
  readonly #client: string | undefined;
  readonly #episodes: number[];
  readonly #done: boolean[];
  /** True when the last reset or step of all took more than a turn. */
  #isLong = false;
  #isClosed = false;

  /**
   * @param options the reset options of each environment; their seeds are those of the first episodes
   * @param client digest of who plays them, for turns
   */
  constructor(
    environments: readonly Environment<unknown, object, object>[],
    options: readonly ResetOptions[],
    client?: string,
  ) {
    this.#client = client;
    this.#environments = environments;
    this.#options = options;
    this.#episodes = environments.map(() => 0);
    this.#done = environments.map(() => false);
  }

  /** Environments. */
  get size(): number {
    return this.#environments.length;
  }

  reset(): VectorResult | Promise<VectorResult> {
    this.#episodes.fill(0);
    return this.#collect((index) => this.#resetOne(index));
  }

  /** Plays an action on each environment whose episode goes on. */
  step(actions: readonly unknown[]): VectorResult | Promise<VectorResult> {
    return this.#collect((index) => {
      if (!this.#done[index]) return this.#environments[index].step(actions[index]);
      this.#episodes[index]++;
      return this.#resetOne(index);
    });
  }

  /** True when the next step of an environment ignores its action. */
  awaitsReset(index: number): boolean {
    return this.#done[index];
  }

  /** Frees the environments; a reset or step under way stops before the next one. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#environments.map(async (environment) => environment.close?.()));
  }

  #resetOne(index: number): StepResult<object> | Promise<StepResult<object>> {
    const options = this.#options[index];
    const seed = ((options.seed ?? 0) + this.#episodes[index] * this.size) % SEEDS;
    return this.#environments[index].reset({ ...options, seed });
  }

  #collect(play: Play): VectorResult | Promise<VectorResult> {
    const results: ReturnType<Play>[] = [];
    if (this.#isLong) return this.#collectInTurns(play, results);
    const turn = new Turn(this.#client);
    while (results.length < this.size) {
      if (turn.isOver) return this.#collectInTurns(play, results);
      results.push(play(results.length));
    }
    return results.some((result) => result instanceof Promise)
      ? Promise.all(results).then((all) => this.#gather(all))
      : this.#gather(results as StepResult<object>[]);
  }

  /** Goes on with the environments that have no result yet, in turns with other computations. */
  async #collectInTurns(play: Play, results: ReturnType<Play>[]): Promise<VectorResult> {
    const turn = new Turn(this.#client);
    let turns = 0;
    while (results.length < this.size) {
      if (turns === 0 || turn.isOver) {
        await turn.next();
        turns++;
      }
      if (this.#isClosed) throw new Error('The environments were closed.');
      results.push(play(results.length));
    }
    this.#isLong = turns > 1;
    return this.#gather(await Promise.all(results));
  }

  #gather(results: readonly StepResult<object>[]): VectorResult {
    const observations: object[] = [];
    const rewards: number[] = [];
    const dones: boolean[] = [];
    for (const [index, { observation, reward, done }] of results.entries()) {
      if (reward !== null && !Number.isFinite(reward)) {
        throw new TypeError(`Expected environment ${index} to give a finite reward, got ${reward}.`);
      }
      observations.push(observation);
      rewards.push(reward ?? 0);
      dones.push(done);
      this.#done[index] = done;
    }
    return { observations, rewards, dones };
  }
}
