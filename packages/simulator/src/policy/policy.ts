import { SimulatorError } from '../simulator-error.ts';
import type { FleetView, ReplicaView, RequestView } from './views.ts';

/**
 * Functions of a scheduler, a router and an autoscaler, any subset of them. They see what the real component sees. `now` is
 * in seconds after the run began. Arguments can only be read.
 */
export interface PolicyFunctions<Metrics = never> {
  /**
   * Order in which an engine admits its waiting requests (vLLM's waiting queue). Called before each iteration that has
   * room while several wait. The queue comes in its present order: preempted requests first, new ones last.
   */
  order?(queue: RequestView[], now: number): readonly RequestView[];
  /** Whether the gateway takes a request, or the probability that it does. */
  admit?(request: RequestView, fleet: FleetView, now: number): boolean | number;
  /** Score of a replica for a request: the highest is chosen, `-Infinity` excludes it (EPP Scorer and Filter). */
  score?(request: RequestView, replica: ReplicaView, now: number, fleet: FleetView): number;
  /** Whether a request is prefilled on a replica of its own, where there are such replicas (EPP pd-decider). */
  disaggregate?(request: RequestView, fleet: FleetView, now: number): boolean;
  /** Replicas wanted from the metrics of the last interval: of the first kind, of each kind, or settings by name. */
  scale?(metrics: Metrics, fleet: ScaledFleet, now: number): Scale;
  /** Choice between equal scores. Default `in_turns`; `first` takes the first replica. */
  readonly ties?: 'in_turns' | 'first';
  /** A copy of the state, for a policy that is played in a run that goes back to a snapshot. */
  state?(): unknown;
  /** Goes back to a state that `state` answered. */
  restore?(state: unknown): void;
}

/** The settings of a fleet that are in force: its action, by name. */
export type ScaledFleet = Readonly<Record<string, number>>;
type Scale = number | readonly number[] | Readonly<Record<string, number>>;

/** The functions, or a function that makes them at the start of each run: the state of its closure is then new. */
export type Policy<Metrics = never> = PolicyFunctions<Metrics> | (() => PolicyFunctions<Metrics>);

export type PolicyFunctionName = (typeof FUNCTIONS)[number];
const FUNCTIONS = ['order', 'admit', 'score', 'disaggregate', 'scale'] as const;
const STATE = ['state', 'restore'] as const;

/** A policy as a module exports it. @throws SimulatorError `POLICY` */
export function definePolicy<Metrics = never>(policy: Policy<Metrics>): Policy<Metrics> {
  if (typeof policy !== 'function') checkFunctions(policy, 'The policy');
  return policy;
}

/** The functions of a policy, for one run. @throws SimulatorError `POLICY` */
export function startPolicy<Metrics>(
  policy: Policy<Metrics>,
  source = 'The policy',
): PolicyFunctions<Metrics> {
  const functions = typeof policy === 'function' ? policy() : policy;
  checkFunctions(functions, source);
  return functions;
}

function checkFunctions(value: unknown, source: string): void {
  const fail = (expected: string, got: string) => {
    throw new SimulatorError('POLICY', `${source}: expected ${expected}, got ${got}`);
  };
  const known = FUNCTIONS.join(', ');
  if (typeof value !== 'object' || value === null) fail(`an object with any of ${known}`, String(value));
  const members = value as Record<string, unknown>;
  for (const name of [...FUNCTIONS, ...STATE]) {
    const member = members[name];
    if (member !== undefined && typeof member !== 'function') {
      fail(`\`${name}\` to be a function`, `${typeof member}`);
    }
  }
  const { ties } = members;
  if (ties !== undefined && ties !== 'in_turns' && ties !== 'first') {
    fail('`ties` to be in_turns or first', String(ties));
  }
  const names: readonly string[] = [...FUNCTIONS, ...STATE, 'ties'];
  const unknown = Object.keys(members).find((name) => !names.includes(name));
  if (unknown !== undefined) fail(`only ${names.join(', ')}`, `\`${unknown}\``);
}

const KINDS = ['replicas', 'second_replicas'];

/** Answers of a function that could not be used; the default's action was taken instead. */
export interface PolicyFault {
  readonly function: PolicyFunctionName;
  readonly count: number;
  /** The first of them. */
  readonly message: string;
}

/** The functions of a policy in one run, and the faults that they made. */
export class PolicyRun {
  readonly functions: PolicyFunctions;
  private readonly counted = new Map<PolicyFunctionName, { count: number; message: string }>();

  constructor(functions: PolicyFunctions) {
    this.functions = functions;
  }

  get faults(): readonly PolicyFault[] {
    return Array.from(this.counted, ([name, fault]) => ({ function: name, ...fault }));
  }

  /** The order that the policy gives to a queue: that of arrival where it answers what is none. */
  ordered(order: NonNullable<PolicyFunctions['order']>, queue: readonly RequestView[], now: number) {
    const left = new Set<unknown>(queue);
    const expected = `the ${queue.length} requests of the queue, each once`;
    const ordered = this.ask(
      'order',
      expected,
      () => order(queue.slice(), now),
      (answer) => {
        const isOrder = Array.isArray(answer) && answer.length === queue.length;
        return isOrder && answer.every((each) => left.delete(each)) ? (answer as RequestView[]) : undefined;
      },
    );
    return ordered ?? queue.toSorted((a, b) => a.arrival - b.arrival);
  }

  /** The settings that an autoscaler asks for; none where it answers none. */
  scaled(metrics: unknown, fleet: ScaledFleet, now: number): Readonly<Record<string, number>> {
    const scale = () => this.functions.scale?.(metrics as never, fleet, now) ?? {};
    const settings = this.ask('scale', 'numbers of replicas', scale, (answer) => {
      const named = typeof answer === 'number' ? [answer] : answer;
      const isList = Array.isArray(named) && named.length >= 1 && named.length <= KINDS.length;
      const asked = isList ? Object.fromEntries(named.map((each, kind) => [KINDS[kind], each])) : named;
      const isRecord = typeof asked === 'object' && !Array.isArray(asked);
      const isUsable = isRecord && Object.values(asked as object).every((each) => Number.isFinite(each));
      return isUsable ? (asked as Record<string, number>) : undefined;
    });
    return settings ?? {};
  }

  /** What `take` makes of the answer of a function; `undefined`, and a fault, where that is nothing. */
  ask<Answer>(
    name: PolicyFunctionName,
    expected: string,
    call: () => unknown,
    take: (answer: unknown) => Answer | undefined,
  ): Answer | undefined {
    try {
      const answer = call();
      const taken = take(answer);
      if (taken === undefined) this.unexpected(name, expected, answer);
      return taken;
    } catch (error) {
      this.thrown(name, error);
      return undefined;
    }
  }

  /** Counts an answer that is not what was expected. */
  unexpected(name: PolicyFunctionName, expected: string, got: unknown): void {
    const shown = typeof got === 'object' && got !== null ? 'an object' : `\`${String(got)}\``;
    this.fault(name, `Expected \`${name}\` to answer ${expected}, got ${shown} (${typeof got})`);
  }

  thrown(name: PolicyFunctionName, error: unknown): void {
    this.fault(name, `\`${name}\` threw: ${error instanceof Error ? error.message : String(error)}`);
  }

  private fault(name: PolicyFunctionName, message: string): void {
    const known = this.counted.get(name);
    if (known === undefined) this.counted.set(name, { count: 1, message });
    else known.count++;
  }
}
