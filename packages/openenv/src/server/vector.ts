import type { Environment, ResetOptions, StepResult } from '../protocol/definition.ts';
import { type JsonSchema, type VectorStep, vectorOptions } from '../protocol/messages.ts';
import type { JsonObject } from '../protocol/read-json.ts';
import { invalidInput, readAt, readInput, toJsonSchema } from '../protocol/schemas.ts';
import type { Lease } from '../sessions/capacity.ts';
import { createInstance, type Watch } from '../sessions/session.ts';
import { Turn, whenDone } from '../sessions/turns.ts';
import type { ServerParts } from './create-server.ts';

/** One number of a row: where it stands in the object, and how it is read and written. */
interface FloatField {
  readonly name: string;
  readonly path: readonly string[];
  /** The values that indexes stand for, when the field is an enumeration or a boolean. */
  readonly values?: readonly unknown[];
}

/**
 * Layout of an object of numbers, booleans and enumerations in a row of float32: its properties in the order of the
 * schema, nested ones as `outer.inner`, fixed-length lists as `list.0`, booleans as 0 or 1, enumerations as the index of
 * their value. Free text has no place in a row.
 */
type FloatLayout = readonly FloatField[];

/** Writes an object into a row. A value that the schema does not foresee becomes NaN. */
function writeRow(layout: FloatLayout, object: object, row: Float32Array, offset: number): void {
  for (const [index, { path, values }] of layout.entries()) {
    let value: unknown = object;
    for (const key of path) value = (value as Record<string, unknown> | undefined)?.[key];
    row[offset + index] = values ? indexOf(values, value) : typeof value === 'number' ? value : Number.NaN;
  }
}

/** Builds the object of a row, still to be validated. An index outside an enumeration stays a number. */
function readRow(layout: FloatLayout, row: Float32Array, offset: number): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [index, { path, values }] of layout.entries()) {
    const number = row[offset + index];
    place(object, path, values?.[number] ?? number);
  }
  return object;
}

/**
 * @param leavesTexts Leaves texts out, as of observations. Actions are read in full.
 * @throws TypeError naming a field that no number can hold
 */
function layoutOf(schema: JsonSchema, leavesTexts: boolean, path: readonly string[] = []): FloatField[] {
  const name = path.join('.');
  if (schema.enum) return [{ name, path, values: schema.enum }];
  if (schema.const !== undefined) return [{ name, path, values: [schema.const] }];
  const { type, items, minItems, maxItems } = schema;
  if (type === 'integer' || type === 'number') return [{ name, path }];
  if (type === 'boolean') return [{ name, path, values: [false, true] }];
  if (type === 'string' && leavesTexts) return [];
  if (type === 'object') {
    return Object.entries(schema.properties ?? {}).flatMap(([key, property]) =>
      layoutOf(property, leavesTexts, [...path, key]),
    );
  }
  if (type === 'array' && items && typeof minItems === 'number' && minItems === maxItems) {
    return Array.from({ length: minItems }, (_, index) =>
      layoutOf(items, leavesTexts, [...path, String(index)]),
    ).flat();
  }
  throw new TypeError(`The field '${name}' cannot be a float32; use the format 'json'.`);
}

function place(object: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let target = object;
  for (let depth = 0; depth < path.length - 1; depth++) {
    const key = path[depth];
    // A key that is a number, as `0`, belongs to a list.
    target[key] ??= /^\d+$/.test(path[depth + 1]) ? [] : {};
    target = target[key] as Record<string, unknown>;
  }
  target[path.at(-1)!] = value;
}

function indexOf(values: readonly unknown[], value: unknown): number {
  const index = values.indexOf(value);
  return index < 0 ? Number.NaN : index;
}

type Layouts = ReturnType<typeof makeLayouts>;

type Reply = string | Uint8Array;

/**
 * The vector extension on one socket: `vector_reset` makes and resets N environments, `vector_step` steps them all.
 * Every environment takes a slot of the server's sessions. They are not kept in a store.
 * @param client digest of who is at the other end
 */
export function vectorConversation(
  { definition, sessions, readAction, readResetOptions }: ServerParts,
  client: string,
) {
  let opened: VectorEnvironments | null = null;
  return { reset, step, stepBinary, close };

  /** Answers `vector_reset`. @throws EnvironmentError */
  function reset(data: JsonObject): Reply | Promise<Reply> {
    const { count, seed, options, format } = readInput(vectorOptions, data);
    const asked = seed === undefined ? options : { ...options, seed };
    const base = readAt(['options'], () => readResetOptions(asked));
    const layouts = format === 'float32' ? makeLayouts(definition) : null;
    close();
    const create = () => createInstance(definition, client);
    const make = (lease: Lease) =>
      vectorEnvironments(count, create, base, { client, watch: sessions.watch }, layouts, lease);
    opened = sessions.hold(count, make, base);
    return whenDone(opened.reset(), (result) => {
      sessions.counts.resets += count;
      return vectorText(result, layouts);
    });
  }

  /** Answers `vector_step`. @throws EnvironmentError `VALIDATION_ERROR` */
  function step({ actions, ...extra }: JsonObject): Reply | Promise<Reply> {
    const environments = required();
    const { size } = environments;
    for (const key in extra) throw invalidInput('extra_forbidden', [key], 'Extra inputs are not permitted');
    if (!Array.isArray(actions) || actions.length !== size) {
      throw invalidInput('list_type', ['actions'], `Input should be a list of ${size} actions`);
    }
    const actionOf = (index: number) => actions[index];
    return play(environments, actionOf, (result) => vectorText(result, null));
  }

  /** Answers a binary frame: the actions of all environments as rows of float32. @throws EnvironmentError `VALIDATION_ERROR` */
  function stepBinary(frame: Uint8Array): Reply | Promise<Reply> {
    const environments = required();
    const { size, layouts } = environments;
    if (!layouts) {
      const problem = "Binary frames need a vector_reset with the format 'float32'";
      throw invalidInput('value_error', [], problem);
    }
    const { action, observation } = layouts;
    const bytes = size * action.length * Float32Array.BYTES_PER_ELEMENT;
    if (frame.byteLength !== bytes) {
      const rows = `${size} rows of ${action.length} float32 (${bytes} bytes)`;
      throw invalidInput('value_error', [], `Input should be ${rows}, not ${frame.byteLength} bytes`);
    }
    // Copied: a frame need not begin at a multiple of four bytes in its buffer, as a Float32Array must.
    const rows = new Float32Array(new Uint8Array(frame).buffer);
    const actionOf = (index: number) => readRow(action, rows, index * action.length);
    return play(environments, actionOf, (result) => vectorBytes(result, observation));
  }

  function close(): void {
    void opened?.close();
    opened = null;
  }

  function required(): VectorEnvironments {
    if (opened) return opened;
    const problem = 'There are no environments yet; send vector_reset first, in a text frame';
    throw invalidInput('value_error', [], problem);
  }

  function play(
    environments: VectorEnvironments,
    actionOf: (index: number) => unknown,
    toReply: (result: VectorStep) => Reply,
  ) {
    // All actions are read before the first is played, so that a mistake in one changes nothing.
    const actions = Array.from({ length: environments.size }, (_, index) =>
      environments.awaitsReset(index) ? null : readAt(['actions', index], () => readAction(actionOf(index))),
    );
    try {
      const result = environments.step(actions);
      sessions.counts.steps += environments.size;
      return whenDone(result, toReply, abandon);
    } catch (error) {
      return abandon(error);
    }
  }

  /** Some environments have stepped and some have not: they cannot go on together. */
  function abandon(error: unknown): never {
    close();
    throw error;
  }
}

function makeLayouts({ action, observation }: ServerParts['definition']) {
  try {
    return {
      action: layoutOf(toJsonSchema(action, 'input'), false),
      observation: layoutOf(toJsonSchema(observation, 'output'), true),
    };
  } catch (error) {
    throw invalidInput('value_error', ['format'], (error as Error).message);
  }
}

function vectorText(result: VectorStep, layouts: Layouts | null): string {
  const namesOf = (layout: FloatLayout) => layout.map(({ name }) => name);
  const layout = layouts && { action: namesOf(layouts.action), observation: namesOf(layouts.observation) };
  return `{"type":"vector","data":${JSON.stringify(layout ? { ...result, layout } : result)}}`;
}

/** Rewards, then dones as 0 or 1, then a row of observation for each environment; little-endian float32. */
function vectorBytes({ observations, rewards, dones }: VectorStep, layout: FloatLayout): Uint8Array {
  const { length } = observations;
  const floats = new Float32Array(length * (2 + layout.length));
  floats.set(rewards);
  for (let index = 0; index < length; index++) {
    floats[length + index] = dones[index] ? 1 : 0;
    writeRow(layout, observations[index] as object, floats, 2 * length + index * layout.length);
  }
  return new Uint8Array(floats.buffer);
}

const SEEDS = 2 ** 32;

type Result = StepResult | Promise<StepResult>;
type VectorEnvironments = ReturnType<typeof vectorEnvironments>;

/**
 * Several instances of one environment that step together. When an episode has ended, the next step of its environment
 * ignores the action and starts the next episode instead (Gymnasium's `AutoresetMode.NEXT_STEP`). With the base seed s
 * and n environments, episode k of environment i has the seed (s + k n + i) mod 2^32.
 * @param base the options of each reset, with the base seed
 * @param client digest of who plays them, for turns
 * @param layouts with the format `float32`
 */
function vectorEnvironments(
  size: number,
  create: () => Environment,
  base: ResetOptions,
  { client, watch }: { readonly client: string; readonly watch: Watch },
  layouts: Layouts | null,
  lease: Lease,
) {
  const environments: Environment[] = [];
  const closeAll = () => Promise.allSettled(environments.map(async (environment) => environment.close?.()));
  try {
    while (environments.length < size) environments.push(create());
  } catch (error) {
    void closeAll();
    throw error;
  }
  const episodes = environments.map(() => 0);
  const dones = environments.map(() => false);
  /** True when the last reset or step of all took more than a turn. */
  let isLong = false;
  let isClosed = false;

  return {
    size,
    layouts,
    reset: () => collect(resetOne),
    /** Plays an action on each environment whose episode goes on. */
    step: (actions: readonly unknown[]) =>
      collect((index) => {
        if (!dones[index]) return watch(() => environments[index].step(actions[index]));
        episodes[index]++;
        return resetOne(index);
      }),
    /** True when the next step of an environment ignores its action. */
    awaitsReset: (index: number) => dones[index],
    /** Frees the environments and their slots; a reset or step under way stops before the next one. */
    async close(): Promise<void> {
      isClosed = true;
      lease.release();
      await closeAll();
    },
  };

  function resetOne(index: number): Result {
    const seed = ((base.seed ?? 0) + index + episodes[index] * size) % SEEDS;
    return watch(() => environments[index].reset({ ...base, seed }));
  }

  function collect(play: (index: number) => Result): VectorStep | Promise<VectorStep> {
    const results: Result[] = [];
    const turn = new Turn(client);
    while (!isLong && !turn.isOver && results.length < size) results.push(play(results.length));
    if (results.length < size) return collectInTurns(play, results);
    return results.some((result) => result instanceof Promise)
      ? Promise.all(results).then(gather)
      : gather(results as StepResult[]);
  }

  /** Goes on with the environments that have no result yet, in turns with other computations. */
  async function collectInTurns(play: (index: number) => Result, results: Result[]): Promise<VectorStep> {
    const turn = new Turn(client);
    let turns = 0;
    // One that fails while the others wait for their turn is told with them, and must not end the process before.
    const handled = (result: Result) => void (result instanceof Promise && result.catch(() => {}));
    results.forEach(handled);
    while (results.length < size) {
      if (turns === 0 || turn.isOver) {
        await turn.next();
        turns++;
      }
      if (isClosed) throw new Error('The environments were closed.');
      results.push(play(results.length));
      handled(results.at(-1)!);
    }
    isLong = turns > 1;
    return gather(await Promise.all(results));
  }

  function gather(results: readonly StepResult[]): VectorStep {
    for (const [index, { reward, done }] of results.entries()) {
      if (reward !== null && !Number.isFinite(reward)) {
        throw new TypeError(`Expected environment ${index} to give a finite reward, got ${reward}.`);
      }
      dones[index] = done;
    }
    return {
      observations: results.map(({ observation }) => observation),
      rewards: results.map(({ reward }) => reward ?? 0),
      dones: results.map(({ done }) => done),
    };
  }
}
