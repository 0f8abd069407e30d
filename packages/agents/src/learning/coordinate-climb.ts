/** Values of a parameter that are told apart on many traces. */
const FINALISTS = 2;

export interface Climbed<Parameters> {
  readonly parameters: Parameters;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
}

/** A search over parameters, each from its own list of values. */
export interface CoordinateSearch<Parameters extends object> {
  /** Values that are tried for each parameter. */
  readonly grid: { readonly [Name in keyof Parameters]: readonly Parameters[Name][] };
  /** Traces that every value is tried on, and those that the best are told apart on. */
  readonly traces: { readonly few: number; readonly many: number };
  /** Return of an episode on the `trace`-th trace. */
  readonly play: (parameters: Parameters, trace: number) => number;
}

/**
 * Coordinate ascent: one parameter at a time is set to its best value, until none changes any more. Every value is tried on
 * a few traces, the best of them on many.
 * @param starts parameters that the search begins with, each by itself; the best end is kept
 */
export function climbCoordinates<Parameters extends object>(
  { grid, traces, play }: CoordinateSearch<Parameters>,
  starts: readonly Parameters[],
): Climbed<Parameters> {
  const names = Object.keys(grid) as (keyof Parameters)[];
  const known = new Map<string, number[]>();
  const returns = (parameters: Parameters, count: number) => {
    const key = names.map((name) => parameters[name]).join(' ');
    const played = known.get(key) ?? [];
    known.set(key, played);
    while (played.length < count) played.push(play(parameters, played.length));
    return played.slice(0, count).reduce((sum, each) => sum + each, 0) / count;
  };
  const climb = (start: Parameters) => {
    let best = start;
    for (let settled = 0, turn = 0; settled < names.length; turn = (turn + 1) % names.length) {
      const name = names[turn]!;
      const finalists = grid[name]
        .map((value) => ({ ...best, [name]: value }))
        .sort((a, b) => returns(b, traces.few) - returns(a, traces.few))
        .slice(0, FINALISTS);
      const [better] = [best, ...finalists].sort((a, b) => returns(b, traces.many) - returns(a, traces.many));
      settled = better === best ? settled + 1 : 1;
      best = better!;
    }
    return { parameters: best, meanReturn: returns(best, traces.many) };
  };
  return starts.map(climb).reduce((a, b) => (b.meanReturn > a.meanReturn ? b : a));
}
