import {
  type FleetController,
  type FleetTask,
  type FleetTaskReference,
  firstSeeds,
  fleet,
  hpaInFlight,
  RateRule,
  type RateRuleParameters,
  STANDARD_RATE_RULE,
} from '@servegym/environments';
import { climbCoordinates } from './coordinate-climb.ts';

/** Values that the search tries for each parameter of the rule. */
const RULE_GRID: { readonly [Name in keyof RateRuleParameters]: readonly number[] } = {
  tokensPerReplica: [
    5000, 7000, 9000, 11_000, 13_000, 15_000, 18_000, 21_000, 24_000, 28_000, 33_000, 39_000,
  ],
  outputWeight: [2, 4, 6, 9, 14, 20],
  memoryWindows: [1, 2, 4, 6, 10, 20],
  admissionSeconds: [0, 1, 2, 5, 10, 20, 600],
  prefixWeight: [0, 0.5, 1, 2, 3, 5],
  tokenBudget: [512, 1024, 2048, 4096, 8192],
};

/** Requests in flight a replica that the search tries as the target of `hpa`. */
const IN_FLIGHT_GRID = { target: [5, 8, 10, 13, 16, 20, 25, 30, 35, 40, 50, 60] };

/** Training episodes that every value is tried on, and those that the best are told apart on. */
export interface TuningTraces {
  readonly few: number;
  readonly many: number;
}

/** Settings of the classic controllers of a task. */
export type TunedControllers = Pick<FleetTaskReference, 'rule' | 'inFlightTarget' | 'constantReplicas'>;

/** The settings that earn most on the first training seeds of a task. */
export function tuneFleet(task: FleetTask, traces: TuningTraces): TunedControllers {
  const drawn = firstSeeds('train', traces.many).map((seed) => ({
    ...{ seed, requests: fleet.drawRequests(task, seed) },
  }));
  const earned = (controller: FleetController, trace: number) => {
    const { seed, requests } = drawn[trace]!;
    return fleet.anchors.controlledReturn(task, seed, requests, controller);
  };
  const rule = climbCoordinates(
    { grid: RULE_GRID, traces, play: (parameters, trace) => earned(new RateRule(parameters), trace) },
    [STANDARD_RATE_RULE],
  );
  const hpa = climbCoordinates(
    { grid: IN_FLIGHT_GRID, traces, play: ({ target }, trace) => earned(hpaInFlight(target), trace) },
    [{ target: 40 }],
  );
  const constant = climbCoordinates<{ replicas: number }>(
    {
      grid: { replicas: Array.from({ length: task.maxReplicas }, (_, i) => i + 1) },
      ...{ traces, play: ({ replicas }, trace) => earned(constantController(replicas), trace) },
    },
    [{ replicas: task.defaultAction.replicas }],
  );
  return {
    rule: rule.parameters,
    inFlightTarget: hpa.parameters.target,
    constantReplicas: constant.parameters.replicas,
  };
}

function constantController(replicas: number): FleetController {
  return { name: 'static', reset() {}, act: ({ previousAction }) => ({ ...previousAction, replicas }) };
}
