import { llmserve, type ServeAction, type ServeKnob } from '@servegym/environments';

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

/** The action with one knob at another value. */
export function withKnob(action: ServeAction, knob: ServeKnob, value: ServeAction[ServeKnob]): ServeAction {
  return { ...action, [knob]: value };
}

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
    neighbours.push(withKnob(action, 'priority_routing', !action.priority_routing));
  }
  for (const knob of Object.keys(CHEAP_MOVES) as (keyof typeof CHEAP_MOVES)[]) {
    if (!knobs.includes(knob)) continue;
    const grid: readonly number[] = KNOB_GRID[knob];
    const at = nearestPlace(grid, action[knob]);
    for (let place = at - CHEAP_MOVES[knob]; place <= at + CHEAP_MOVES[knob]; place++) {
      const value = grid[place];
      if (value !== undefined && value !== action[knob]) neighbours.push(withKnob(action, knob, value));
    }
  }
  return neighbours;
}

/** Each action once, in the order of its first appearance. */
export function distinctActions(actions: readonly ServeAction[]): ServeAction[] {
  return [...new Map(actions.map((action) => [actionKey(action), action])).values()];
}

function nearestPlace(grid: readonly number[], value: number): number {
  let best = 0;
  for (let place = 1; place < grid.length; place++) {
    if (Math.abs(grid[place] - value) < Math.abs(grid[best] - value)) best = place;
  }
  return best;
}
