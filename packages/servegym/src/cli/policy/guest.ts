/** Numbers of a request and of a replica, in the order in which the host writes them. */
const REQUEST = ['prompt_tokens', 'priority', 'arrival', 'predicted_output_tokens', 'predicted_output_error'];
const REPLICA = [
  ...['index', 'kind', 'role', 'num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc'],
  ...['requests_sent', 'requests_in_flight', 'scrape_age', 'prefix_match', 'prefix_match_tokens', 'weight'],
  ...['usd_per_hour', 'prefix_cached_tokens', 'prompt_tokens_queued', 'kv_cache_tokens'],
];

/** What the guest is made of. Answers are numbers, booleans (1 and 0), exceptions, or something else. */
export const GUEST = {
  REQUEST,
  REPLICA,
  FLEET: ['num_requests_held', 'queue_seconds'],
  ROLES: ['prefill', 'decode', 'both'] as readonly string[],
  HOOKS: ['order', 'admit', 'score', 'disaggregate', 'scale'] as const,
  ANSWER: { number: 0, boolean: 1, thrown: 2, other: 3 },
  /** Most requests of a queue, replicas and hashes of a prompt that a call shows. */
  ...{ ROWS: 32_768, REPLICAS: 32, HASHES: 65_536 },
};
export type Hook = (typeof GUEST.HOOKS)[number];

/** The text of a policy without blocks and lines of comments. */
export function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}

/** What the guest hands to its host: memory that numbers are written into, and functions that take and give primitives. */
export interface Guest {
  readonly requests: Float64Array;
  readonly replicas: Float64Array;
  readonly fleet: Float64Array;
  readonly hashes: Float64Array;
  /** Rows of the queue as `order` answered, or scores of the replicas. */
  readonly list: Float64Array;
  /** Kind of the last answer, or of that for each replica. */
  readonly kinds: Float64Array;
  /** Takes the policy of a module. Answers the names of its functions and its `ties`, or a sentence that begins with `!`. */
  adopt(exported: unknown): string;
  /** Replicas and hashes that the next call shows. */
  show(replicas: number, hashes: number): void;
  order(rows: number, now: number): number;
  ask(hook: 'admit' | 'disaggregate', now: number): number;
  score(now: number): void;
  /** Takes and answers JSON. */
  scale(metrics: string, now: number): string;
  /** What was thrown, or the type of what was answered. */
  text(): string;
  /** Processor time of the policy so far, where the guest knows it. */
  spentMs?(): number;
}

/**
 * Takes from a realm what a policy is not to have: clock, chance, memory outside the heap, and what tells when memory is
 * collected. Its text runs there, before any other, so it refers to nothing outside itself, as those below.
 */
export function tameRealm(): void {
  const kept =
    'Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol RegExp Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError globalThis JSON Math Map BigInt Set WeakMap WeakSet Proxy Reflect isFinite isNaN Iterator';
  for (const name of Reflect.ownKeys(globalThis))
    if (!kept.split(' ').includes(name as string)) Reflect.deleteProperty(globalThis, name);
  const fix = (target: object, name: PropertyKey, value: unknown) =>
    Object.defineProperty(target, name, { value, writable: false, configurable: false });
  fix(Math, 'random', () => {
    throw new TypeError('a policy has no Math.random: use fleet.random()');
  });
  for (const name of ['prepareStackTrace', 'captureStackTrace']) fix(Error, name, undefined);
  fix(Error, 'stackTraceLimit', 0);
  fix(globalThis, 'definePolicy', (policy: unknown) => policy);
}

/** Freezes all that can be reached from the realm and from `more`, so that no policy changes it under what runs below. */
export function freezeRealm(more: readonly unknown[]): void {
  const seen = new Set<unknown>([globalThis]);
  const freeze = (value: unknown) => {
    if (Object(value) !== value || seen.has(value)) return;
    seen.add(value);
    freeze(Reflect.getPrototypeOf(value as object));
    for (const key of Reflect.ownKeys(value as object)) {
      const { value: member, get, set } = Reflect.getOwnPropertyDescriptor(value as object, key)!;
      for (const each of [member, get, set]) freeze(each);
    }
    Object.freeze(value);
  };
  const iterators = [[], new Map(), new Set(), ''].map((each) =>
    (each as Iterable<unknown>)[Symbol.iterator](),
  );
  for (const name of Reflect.ownKeys(globalThis)) {
    const value = (globalThis as Record<PropertyKey, unknown>)[name];
    freeze(value);
    Object.defineProperty(globalThis, name, { value, writable: false, configurable: false });
  }
  for (const each of [...more, ...iterators, ''.matchAll(/x/g)]) freeze(each);
  for (const each of [async () => {}, function* () {}, async function* () {}]) freeze(each);
}

/** Random numbers in [0, 1) of a seed: Mulberry32. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Memory of the guest and the views of it that a policy gets, which can only be read. */
export function guestViews(given: typeof GUEST, random: () => number) {
  const { REQUEST, REPLICA, FLEET, ROLES, ROWS, REPLICAS, HASHES } = given;
  const requests = new Float64Array(ROWS * REQUEST.length);
  const replicas = new Float64Array(REPLICAS * REPLICA.length);
  const fleetNumbers = new Float64Array(FLEET.length);
  const hashes = new Float64Array(HASHES);
  const list = new Float64Array(ROWS);
  const kinds = new Float64Array(REPLICAS);
  let [shown, hashed] = [0, 0];

  /** Numbers from a place in memory on. */
  class View {
    readonly #at: number;
    constructor(at: number) {
      this.#at = at;
      Object.freeze(this);
    }
    static show(of: object, memory: Float64Array, names: readonly string[]) {
      for (const [offset, name] of names.entries()) {
        const get =
          name === 'role'
            ? function (this: View) {
                return ROLES[memory[this.#at + offset]];
              }
            : function (this: View) {
                const value = memory[this.#at + offset];
                return value === -1 ? null : value;
              };
        Object.defineProperty(of, name, { get, enumerable: true });
      }
    }
  }
  class RequestView extends View {
    get prefix_hashes() {
      return Object.freeze(Array.from(hashes.subarray(0, hashed)));
    }
  }
  class ReplicaView extends View {}
  const views = Array.from({ length: REPLICAS }, (_, row) => new ReplicaView(row * REPLICA.length));
  /** The first n replicas. */
  const firsts = Array.from({ length: REPLICAS + 1 }, (_, n) => Object.freeze(views.slice(0, n)));
  class FleetView extends View {
    get replicas() {
      return firsts[shown];
    }
    random() {
      return random();
    }
  }
  View.show(RequestView.prototype, requests, REQUEST);
  View.show(ReplicaView.prototype, replicas, REPLICA);
  View.show(FleetView.prototype, fleetNumbers, FLEET);
  return {
    memory: { requests, replicas, fleet: fleetNumbers, hashes, list, kinds },
    show(count: number, hashCount: number) {
      shown = count;
      hashed = hashCount;
    },
    fleet: new FleetView(0) as object,
    request: (row: number): object => new RequestView(row * REQUEST.length),
    /** The replicas of a call. */
    shown: (): readonly object[] => firsts[shown],
    classes: [RequestView, ReplicaView, FleetView] as readonly unknown[],
  };
}

/** Adopts a policy, asks it, and writes what it answers. Nothing but primitives goes out. */
export function guestPolicy(given: typeof GUEST, views: ReturnType<typeof guestViews>): Guest {
  const { HOOKS, ANSWER, ROWS } = given;
  const { memory, fleet, request, shown, show } = views;
  const { list, kinds } = memory;
  const functions: Partial<Record<Hook, (...given: unknown[]) => unknown>> = {};
  let text = '';
  const messageOf = (error: unknown): string => {
    try {
      return `${(Object(error) === error && (error as Error).message) || error}`.slice(0, 200);
    } catch {
      return 'something that cannot be read';
    }
  };
  const thrown = (error: unknown, row = 0) => {
    kinds[row] = ANSWER.thrown;
    text = messageOf(error);
    return 0;
  };
  const answered = (value: unknown, row = 0) => {
    const type = typeof value;
    if (type === 'number' || type === 'boolean') {
      kinds[row] = ANSWER[type];
      return Number(value);
    }
    kinds[row] = ANSWER.other;
    text = type;
    return 0;
  };
  return {
    ...memory,
    show,
    adopt(exported) {
      try {
        const policy = (typeof exported === 'function' ? exported() : exported) as Record<string, unknown>;
        if (typeof policy !== 'object' || policy === null)
          return `!expected the module to export a policy by \`export default definePolicy({...})\`, got ${messageOf(policy)}`;
        for (const name of HOOKS) {
          const member = policy[name];
          if (member === undefined) continue;
          if (typeof member !== 'function')
            return `!expected \`${name}\` to be a function, got ${typeof member}`;
          functions[name] = member.bind(policy) as (...given: unknown[]) => unknown;
        }
        return `${Object.keys(functions).join(' ')}/${policy.ties === 'first' ? 'first' : 'in_turns'}`;
      } catch (error) {
        return `!the policy threw as it was made: ${messageOf(error)}`;
      }
    },
    order(rows, now) {
      const queue = Array.from({ length: rows }, (_, row) => request(row));
      const rowOf = new Map<unknown, number>(queue.map((each, row) => [each, row]));
      try {
        const order = functions.order!(queue, now) as ArrayLike<unknown>;
        if (Object(order) !== order) return answered(undefined);
        const length = Math.min(ROWS, order.length);
        for (let i = 0; i < length; i++) list[i] = rowOf.get(order[i]) ?? -1;
        return answered(length);
      } catch (error) {
        return thrown(error);
      }
    },
    ask(hook, now) {
      try {
        return answered(functions[hook]!(request(0), fleet, now));
      } catch (error) {
        return thrown(error);
      }
    },
    score(now) {
      const scored = request(0);
      const replicas = shown();
      // An iterator would take a sixteenth of the time of a trace.
      for (let row = 0; row < replicas.length; row++) {
        try {
          list[row] = answered(functions.score!(scored, replicas[row], now, fleet), row);
        } catch (error) {
          list[row] = thrown(error, row);
        }
      }
    },
    scale(metrics, now) {
      try {
        const [seen, inForce] = JSON.parse(metrics);
        const answer = JSON.stringify(functions.scale!(seen, inForce, now));
        answered(typeof answer === 'string' ? 0 : undefined);
        return typeof answer === 'string' ? answer : '';
      } catch (error) {
        thrown(error);
        return '';
      }
    },
    text: () => text,
  };
}
