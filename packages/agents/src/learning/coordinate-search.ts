import {
  type EpisodeRequests,
  type FleetController,
  type FleetTask,
  type FleetTaskReference,
  firstSeeds,
  fleet,
  holdMaskedKnobs,
  hpaInFlight,
  llmserve,
  ruleController,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
  STANDARD_RATE_RULE,
} from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { CheckEffort } from '../core/checks/task-check.ts';
import { playWindows } from '../core/policy.ts';
import { distinctActions, KNOB_GRID } from '../planning/plan-clairvoyant.ts';
import { playRule, type ServeRule, UNTUNED_RULE } from '../policies/rule-policies.ts';
import { knownTask } from './learners.ts';
import { drawTraffic, trainingTraces } from './learning-environment.ts';
import GRIDS from './search-grids.json' with { type: 'json' };

/** Training episodes that every value is tried on, and those that the best are told apart on. */
type TuningTraces = CheckEffort['traces'];

/** Settings that a search has come to, and what they earn. */
interface Climbed<Settings> {
  readonly settings: Settings;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
}

/** A search over settings, each from its own list of values. */
interface CoordinateSearch<Settings extends object> {
  /** Values that are tried for each setting. */
  readonly grid: { readonly [Name in keyof Settings]?: readonly Settings[Name][] };
  readonly traces: TuningTraces;
  /** Values of a setting that are told apart on many traces. */
  readonly finalists: number;
  /** Return of an episode on the `trace`-th trace. */
  readonly play: (settings: Settings, trace: number) => number;
  /** Ends the search after the setting at hand. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each setting with what the search has come to. */
  readonly onTurn?: ((reached: Climbed<Settings>) => void) | undefined;
}

/** Mean return over the first `count` traces; an episode is played once. */
type MeanReturn<Settings> = (settings: Settings, count: number) => number;

/**
 * Coordinate ascent: one setting at a time takes its best value, until none changes any more. Every value is tried on a few
 * traces, the best of them on many.
 * @param startsOf settings that the search begins with, each by itself; the best end is kept
 */
export async function climbCoordinates<Settings extends object>(
  { grid, traces, finalists: count, play, signal, onTurn }: CoordinateSearch<Settings>,
  startsOf: (mean: MeanReturn<Settings>) => readonly Settings[],
): Promise<Climbed<Settings>> {
  const names = Object.keys(grid) as (keyof Settings)[];
  const known = new Map<string, number[]>();
  const mean: MeanReturn<Settings> = (settings, count) => {
    const key = names.map((name) => settings[name]).join(' ');
    const played = known.get(key) ?? [];
    known.set(key, played);
    while (played.length < count) played.push(play(settings, played.length));
    return played.slice(0, count).reduce((sum, each) => sum + each, 0) / count;
  };
  const byMeanOver = (count: number) => (a: Settings, b: Settings) => mean(b, count) - mean(a, count);
  const climb = async (start: Settings) => {
    let reached: Climbed<Settings>;
    let settings = start;
    let settled = 0;
    let turn = 0;
    do {
      const name = names[turn]!;
      const tried = grid[name]!.map((value): Settings => ({ ...settings, [name]: value }));
      const finalists = tried.sort(byMeanOver(traces.few)).slice(0, count);
      const [better] = [settings, ...finalists].sort(byMeanOver(traces.many));
      settled = better === settings ? settled + 1 : 1;
      settings = better!;
      turn = (turn + 1) % names.length;
      reached = { settings, meanReturn: mean(settings, traces.many) };
      onTurn?.(reached);
      // Let progress be shown and signals be heard.
      await new Promise((resolve) => setImmediate(resolve));
    } while (settled < names.length && !signal?.aborted);
    return reached;
  };
  let best: Climbed<Settings> | undefined;
  for (const start of startsOf(mean)) {
    if (best !== undefined && signal?.aborted) break;
    const end = await climb(start);
    if (best === undefined || end.meanReturn > best.meanReturn) best = end;
  }
  return best!;
}

/** Configurations drawn to begin with. */
const DRAWN = 48;
/** Of them, so many are left after each round, which has four times the traces of the one before. */
const LEFT = [12, 2];
/** Windows of an episode whose traffic is all of one phase. */
const PHASE_WINDOWS = 24;

/** Task and traces of the search for a constant. */
interface TuneConstantOptions {
  readonly taskId: string;
  /** Decides which traces of the training split are played, and where the search begins. */
  readonly seed: number;
  /** Traffic is all of this phase, with the configuration in force from the start. Default: that of the task. */
  readonly phase?: ServeTask['phases'][number];
  /** Default 4 and 24. */
  readonly traces?: TuningTraces;
  /** Ends the search after the knob at hand. */
  readonly signal?: AbortSignal;
  /** Called after each knob with the configuration that the search has come to. */
  readonly onProgress?: (progress: TunedConstant) => void;
}

/** The best configuration so far, and what it earns. */
export interface TunedConstant {
  readonly action: ServeAction;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
  /** Episodes played so far. */
  readonly episodes: number;
}

/**
 * Looks for the configuration that earns most when it is kept for whole episodes of the training split. Configurations
 * drawn over all knobs are halved on more and more traces; from the best two and from the default, `climbCoordinates` goes
 * on. All are played on the same traces.
 */
export async function tuneConstant(options: TuneConstantOptions): Promise<TunedConstant> {
  const { taskId, seed, phase, traces = { few: 4, many: 24 }, signal, onProgress } = options;
  const task = knownTask(llmserve, taskId);
  const alone = phase && {
    ...{ ...task, windows: PHASE_WINDOWS },
    phases: [{ ...phase, windows: [PHASE_WINDOWS, PHASE_WINDOWS] as const }],
  };
  const drawn = drawTraffic(llmserve, alone ?? task, trainingTraces(seed, traces.many));
  let episodes = 0;
  const told = ({ settings: action, meanReturn }: Climbed<ServeAction>) => ({ action, meanReturn, episodes });
  const best = await climbCoordinates<ServeAction>(
    {
      ...{ traces, finalists: 3, signal },
      grid: Object.fromEntries(llmserve.activeKnobs(task).map((knob) => [knob, KNOB_GRID[knob]])),
      play(action, trace) {
        episodes++;
        const { seed, requests } = drawn[trace]!;
        const played = alone ? { ...alone, defaultAction: action } : task;
        return llmserve.anchors.constantReturn(played, seed, requests, action);
      },
      onTurn: (reached) => onProgress?.(told(reached)),
    },
    (mean) => [task.defaultAction, ...promising(task, mean, seed, traces)],
  );
  return told(best);
}

/** The best of configurations drawn over all active knobs, by successive halving. */
function promising(
  task: ServeTask,
  mean: MeanReturn<ServeAction>,
  seed: number,
  { many }: TuningTraces,
): ServeAction[] {
  const draws = new RandomStream(seed, 'constants');
  const drawnAction = () =>
    Object.fromEntries(
      llmserve.knobs.map((knob) => [knob, KNOB_GRID[knob][draws.integer(0, KNOB_GRID[knob].length - 1)]]),
    ) as ServeAction;
  let left = distinctActions(Array.from({ length: DRAWN }, () => holdMaskedKnobs(task, drawnAction())));
  for (const [round, count] of LEFT.entries()) {
    const played = Math.min(many, 2 * 4 ** round);
    left = left.sort((a, b) => mean(b, played) - mean(a, played)).slice(0, count);
  }
  return left;
}

/** Rules that the search starts from: FP16 by prompts, by price, and by price with room for tenants. */
const RULE_STARTS = [
  UNTUNED_RULE,
  { ...UNTUNED_RULE, longPrompt: 0, dear: 0.1 },
  { ...UNTUNED_RULE, longPrompt: 0, dear: 0.1, headroomGb: 12, batchCap: 96 },
];
/** Values of a parameter of a rule that are told apart on many traces. */
const RULE_FINALISTS = 2;
/**
 * Looks for the parameters with which the rule earns most on the training split, from the untuned rule; see
 * `climbCoordinates`.
 * @param kept configuration that the rule starts from, the best constant of the task
 */
export async function tuneRule(
  task: ServeTask,
  kept: ServeAction,
  { seed, traces }: { readonly seed: number; readonly traces: TuningTraces },
): Promise<{ readonly rule: ServeRule; readonly meanReturn: number }> {
  const drawn = drawTraffic(llmserve, task, trainingTraces(seed, traces.many));
  const { settings, meanReturn } = await climbCoordinates(
    {
      ...{ grid: GRIDS.serveRule, traces, finalists: RULE_FINALISTS },
      play: (parameters, trace) => ruleReturn(task, { kept, parameters }, drawn[trace]!),
    },
    () => RULE_STARTS,
  );
  return { rule: { kept, parameters: settings }, meanReturn };
}

/** Return of an episode that the rule plays. */
export function ruleReturn(
  task: ServeTask,
  rule: ServeRule,
  { seed, requests }: { readonly seed: number; readonly requests: EpisodeRequests },
): number {
  return playWindows(new ServeEpisode(task, seed, { requests }), playRule(task, rule));
}

/** Settings of the classic controllers of a task. */
export type TunedControllers = Pick<FleetTaskReference, 'rule' | 'inFlightTarget' | 'constantReplicas'>;

/** The settings that earn most on the first training seeds of a task. */
export async function tuneFleet(task: FleetTask, traces: TuningTraces): Promise<TunedControllers> {
  const drawn = drawTraffic(fleet, task, firstSeeds('train', traces.many));
  const best = async <Settings extends object>(
    grid: CoordinateSearch<Settings>['grid'],
    starts: readonly Settings[],
    controllerOf: (settings: Settings) => FleetController,
  ) => {
    const play = (settings: Settings, trace: number) => {
      const { seed, requests } = drawn[trace]!;
      return fleet.anchors.controlledReturn(task, seed, requests, controllerOf(settings));
    };
    const search = { grid, traces, finalists: RULE_FINALISTS, play };
    return (await climbCoordinates(search, () => starts)).settings;
  };
  const counts = { replicas: Array.from({ length: task.maxReplicas }, (_, i) => i + 1) };
  const { replicas } = task.defaultAction;
  const known = fleet.anchors.reference(task.id)?.rule;
  // From the standard one alone the search may end where one replica loses least.
  const rules = [STANDARD_RATE_RULE, ...(known ? [known] : [])];
  return {
    rule: await best(GRIDS.rateRule, rules, (parameters) => ruleController(parameters)),
    inFlightTarget: (
      await best(GRIDS.requestsInFlight, [{ target: 40 }], ({ target }) => hpaInFlight(target))
    ).target,
    constantReplicas: (await best(counts, [{ replicas }], constantController)).replicas,
  };
}

function constantController({ replicas }: { readonly replicas: number }): FleetController {
  return { name: 'static', reset() {}, act: ({ previousAction }) => ({ ...previousAction, replicas }) };
}
