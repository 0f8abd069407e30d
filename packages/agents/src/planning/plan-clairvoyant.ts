import {
  type EpisodeRequests,
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeEpisodeSnapshot,
  type ServeKnob,
  type ServeTask,
} from '@servegym/environments';
import { portableMath } from '@servegym/simulator';
import { bestOf, type Plan, turned } from '../core/policy.ts';

/** The values that searches try, about evenly spaced on a logarithmic scale where a knob acts in proportion. */
export const KNOB_GRID = {
  batch_cap: [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
  kv_budget_fraction: [0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  speculation_depth: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  quantization_tier: llmserve.bins.quantization_tier,
  prefill_decode_split: [false, true],
  priority_routing: [false, true],
} as const satisfies { readonly [Knob in ServeKnob]: readonly ServeAction[Knob][] };

/** Knobs that take neither reload nor drain, and how many places of the grid a planner moves them at a time. */
const CHEAP_MOVES = { batch_cap: 2, kv_budget_fraction: 2, speculation_depth: 2 } as const;

/** Two actions are the same when their keys are. */
export function actionKey(action: ServeAction): string {
  return llmserve.knobs.map((knob) => action[knob]).join(' ');
}

/** Precision and split: a change takes a reload or a drain. */
export function modeOf({ quantization_tier, prefill_decode_split }: ServeAction): string {
  return `${quantization_tier} ${prefill_decode_split}`;
}

/** Actions that turn one of `knobs` by a place or two of the grid, where that takes neither reload nor drain. */
export function neighboursOf(action: ServeAction, knobs: readonly ServeKnob[]): ServeAction[] {
  const neighbours: ServeAction[] = [];
  if (knobs.includes('priority_routing')) {
    neighbours.push(turned(action, 'priority_routing', !action.priority_routing));
  }
  for (const knob of Object.keys(CHEAP_MOVES) as (keyof typeof CHEAP_MOVES)[]) {
    if (!knobs.includes(knob)) continue;
    const grid: readonly number[] = KNOB_GRID[knob];
    const distances = grid.map((value) => Math.abs(value - action[knob]));
    const at = distances.indexOf(Math.min(...distances));
    for (let place = at - CHEAP_MOVES[knob]; place <= at + CHEAP_MOVES[knob]; place++) {
      const value = grid[place];
      if (value !== undefined && value !== action[knob]) neighbours.push(turned(action, knob, value));
    }
  }
  return neighbours;
}

/**
 * Actions that change precision or division and nothing else. Recorded configurations bring the pool and the batch of other
 * traffic with them, so that on this one a change of precision may not look worth its reload.
 */
export function otherModes(action: ServeAction, knobs: readonly ServeKnob[]): ServeAction[] {
  return (['quantization_tier', 'prefill_decode_split'] as const)
    .filter((knob) => knobs.includes(knob))
    .flatMap((knob) => KNOB_GRID[knob].map((value) => turned(action, knob, value)))
    .filter((other) => modeOf(other) !== modeOf(action));
}

/** Each action once, in the order of its first appearance. */
export function distinctActions(actions: readonly ServeAction[]): ServeAction[] {
  return [...new Map(actions.map((action) => [actionKey(action), action])).values()];
}

/** States kept for each mode (precision and split), so that one that pays for a change survives until it is repaid. */
const WIDTH = 2;
/** States this much behind the best are given up, in reward. */
const PRUNE_MARGIN = 4;

interface ClairvoyantOptions {
  readonly requests: EpisodeRequests;
  /** Configurations worth changing to; masked knobs are held. The plan is never worse than keeping any of them. */
  readonly configurations: readonly ServeAction[];
  /**
   * The search is made at each of these multiples of what a backlog is believed to cost, and the best plan is kept.
   * Default [1]; see `UNSURE_BACKLOG_PRICES`.
   */
  readonly backlogPrices?: readonly number[];
}

/** For traffic and servers other than those of the tasks, whose load may be far from what the belief was made for. */
export const UNSURE_BACKLOG_PRICES = [0.5, 1, 2, 4];

interface Node {
  readonly snapshot: ServeEpisodeSnapshot;
  readonly return: number;
  /** The return, less what the backlog will cost. */
  readonly value: number;
  readonly action: ServeAction;
  readonly parent: Node | null;
}

/**
 * A good sequence of configurations for traffic that is known in advance: beam search over the windows, with the states
 * of each mode kept apart. From every state the knobs that take neither reload nor drain are moved by a place or two;
 * from the best of each mode all `configurations` are tried too.
 */
export function planClairvoyant(
  task: ServeTask,
  seed: number,
  { requests, configurations: given, backlogPrices = [1] }: ClairvoyantOptions,
): Plan<ServeAction> {
  const configurations = given.map((action) => holdMaskedKnobs(task, action));
  return bestOf<Plan<ServeAction>>([
    ...backlogPrices.map((price) => {
      return searchBeam(new ServeEpisode(task, seed, { requests }), configurations, price);
    }),
    ...configurations.map((action) => ({
      actions: Array<ServeAction>(task.windows).fill(action),
      return: llmserve.anchors.constantReturn(task, seed, requests, action),
    })),
  ]);
}

function searchBeam(
  episode: ServeEpisode,
  configurations: readonly ServeAction[],
  price: number,
): Plan<ServeAction> {
  const { task } = episode;
  const meanTokens = meanWindowTokens(episode);
  const knobs = llmserve.activeKnobs(task);
  let beam: Node[] = [
    { snapshot: episode.snapshot(), return: 0, value: 0, action: episode.action, parent: null },
  ];
  for (let window = 0; window < task.windows; window++) {
    const kept = new Map<string, Node[]>();
    const opened = new Set<string>();
    for (const node of beam) {
      const mode = modeOf(node.action);
      const first = !opened.has(mode);
      opened.add(mode);
      const others = first ? configurations : configurations.filter((action) => modeOf(action) === mode);
      for (const action of distinctActions([node.action, ...neighboursOf(node.action, knobs), ...others])) {
        episode.restore(node.snapshot);
        const total = node.return + episode.step(action);
        const value = total - price * backlogCost(episode, meanTokens);
        const nodes = kept.get(modeOf(action)) ?? [];
        kept.set(modeOf(action), nodes);
        if (nodes.length === WIDTH && value <= nodes[WIDTH - 1].value) continue;
        nodes.push({ snapshot: episode.snapshot(), return: total, value, action, parent: node });
        nodes.sort((a, b) => b.value - a.value);
        nodes.length = Math.min(nodes.length, WIDTH);
      }
    }
    const most = Math.max(...[...kept.values()].map(([best]) => best!.value));
    beam = [...kept.values()]
      .flat()
      .filter(({ value }) => value > most - PRUNE_MARGIN)
      .sort((a, b) => b.value - a.value);
  }
  const best = bestOf(beam);
  return { actions: actionsTo(best), return: best.return };
}

function actionsTo(end: Node): ServeAction[] {
  const actions: ServeAction[] = [];
  for (let node = end; node.parent !== null; node = node.parent) actions.push(node.action);
  return actions.reverse();
}

/** Reward that a window earns less while the server works off a backlog. */
const COST_OF_A_WINDOW = 0.9;
/** Tokens that a server emits in a window when it has to, over those that arrive in a window of the mean. */
const CAPACITY_OVER_MEAN = 2;

/** Output tokens that a window brings, on average over the task's phases. */
export function meanWindowTokens({ task }: ServeEpisode): number {
  let tokens = 0;
  let weights = 0;
  for (const { weight, windows, arrivalsPerSecond, traffic } of task.phases) {
    const share = weight * (windows[0] + windows[1]);
    const rate = (arrivalsPerSecond[0] + arrivalsPerSecond[1]) / 2;
    let perRequest = 0;
    // The mean of a log-normal is exp(sigma^2 / 2) times its median.
    for (const { share: part, output } of Object.values(traffic)) {
      perRequest += part * output.median * portableMath.exp((output.sigma * output.sigma) / 2);
    }
    tokens += share * rate * task.windowSeconds * perRequest;
    weights += share;
  }
  return tokens / weights;
}

/**
 * Cost of the requests that wait at the end of the last window in the windows after it: the windows that it
 * takes to serve them, at most those that are left.
 * @param meanTokens `meanWindowTokens` of the task
 */
export function backlogCost({ task, window, metrics }: ServeEpisode, meanTokens: number): number {
  const windows = metrics.owedTokens / (CAPACITY_OVER_MEAN * meanTokens);
  return COST_OF_A_WINDOW * Math.min(task.windows - window, windows);
}
