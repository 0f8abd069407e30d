import { readFile } from 'node:fs/promises';
import type { PointRow } from '../fidelity/operating-points.ts';
import { benchmark, quantile } from '../harness.ts';

const HELD = 0.9;
const METRICS = ['tpotMs', 'ttftMs'] as const;

export default benchmark({
  what: `How often the 90 % interval of a predicted latency holds the measured one, on the open operating points of NVIDIA's aiconfigurator-core; between 85 and 95 % it says what it promises. FILE is made by \`run.ts fidelity --tables FOLDER --results points.json\`, whose predictions leave out the campaign of the point where constants are fitted.
The interval of a campaign is as wide as 90 % of the relative errors of all other campaigns; \`PROFILE_ERRORS\` has the width over all.`,
  options: {},
  arguments: 'FILE',
  async *run(_, [path]) {
    if (path === undefined) throw new Error('expected the JSON of `run.ts fidelity`, got none');
    const { points } = JSON.parse(await readFile(path, 'utf8')) as { readonly points: readonly PointRow[] };
    for (const [engine, of] of Map.groupBy(points, ({ point }) => point.engine)) {
      for (const metric of METRICS) {
        const errors = of.flatMap(({ point, ours, refitted }) => {
          const found = refitted?.campaign ?? ours;
          return 'error' in found
            ? []
            : [{ campaign: point.campaign, error: Math.abs(found[metric] / point[metric] - 1) }];
        });
        const width = (some: typeof errors) =>
          quantile(
            some.map(({ error }) => error),
            HELD,
          );
        const widths = new Map(
          [...new Set(errors.map(({ campaign }) => campaign))].map((name) => {
            const others = errors.filter(({ campaign }) => campaign !== name);
            return [name, width(others.length > 0 ? others : errors)];
          }),
        );
        const held = errors.filter(({ campaign, error }) => error <= widths.get(campaign)!);
        const latency = metric.replace('Ms', '').toUpperCase();
        yield {
          ...{ engine, latency, rows: errors.length, campaigns: widths.size },
          'width over all, %': 100 * width(errors),
          'held by widths of other campaigns, %': (100 * held.length) / errors.length,
        };
      }
    }
  },
});
