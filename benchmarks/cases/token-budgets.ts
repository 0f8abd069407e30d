import { mean as meanOf } from '@servegym/simulator/statistics';
import { benchmark, required } from '../harness.ts';
import {
  budgetOf,
  FITTED_SEED,
  fittedProfile,
  MODELS,
  modelOf,
  P_PAS,
  play,
  readRuns,
} from '../rtx5090-runs.ts';

/** Measured latencies that differ by no more than this share are no pair. */
const LEAST_DIFFERENCE = 0.05;

export default benchmark({
  what: `Static token budgets (\`max_num_batched_tokens\`) and P-PAS on an RTX 5090 beside what was measured there with vLLM 0.22 (\`--data FOLDER\`, docs/reference-data.md): which of two budgets answers sooner under which arrivals, and what P-PAS gains over the best of them.
Each model has an estimated profile, some of whose coefficients are fitted to the static budgets of seed 0. All other seeds, and P-PAS everywhere, are predictions.`,
  options: { data: required },
  *run({ data }) {
    const runs = readRuns(data);
    const profiles = new Map(MODELS.map((model) => [model, fittedProfile(model, runs)]));
    const cells = Map.groupBy(
      runs.filter(({ seed }) => seed !== FITTED_SEED),
      (run) =>
        [modelOf(run), run.phase_schedule, run.configured_prompt_tokens, run.configured_output_tokens].join(
          ' ',
        ),
    );
    const rows = [...cells.values()].map((ofCell) => {
      const latencies = new Map(
        [...Map.groupBy(ofCell, budgetOf)].map(([budget, some]) => [
          budget,
          {
            measured: meanOf(some.map((run) => run.avg_latency)),
            simulated: meanOf(some.map((run) => play(run, profiles.get(modelOf(run))!).latency)),
          },
        ]),
      );
      const measured = (budget: string) => latencies.get(budget)!.measured;
      const simulated = (budget: string) => latencies.get(budget)!.simulated;
      const fixed = [...latencies.keys()].filter((budget) => budget !== P_PAS);
      const pairs = fixed
        .flatMap((a, i) => fixed.slice(i + 1).map((b) => [a, b] as const))
        .filter(([a, b]) => Math.abs(measured(a) / measured(b) - 1) > LEAST_DIFFERENCE);
      const best = (of: (budget: string) => number) => fixed.reduce((a, b) => (of(b) < of(a) ? b : a));
      const gain = (of: (budget: string) => number) => 100 * (1 - of(P_PAS) / of(best(of)));
      const [run] = ofCell;
      return {
        model: modelOf(run).split('/')[1],
        prompt: run.configured_prompt_tokens,
        output: run.configured_output_tokens,
        'peak rate': Math.max(...run.phase_schedule.split(',').map((phase) => Number(phase.split(':')[1]))),
        'best measured': best(measured),
        'best simulated': best(simulated),
        right: pairs.filter(([a, b]) => measured(a) < measured(b) === simulated(a) < simulated(b)).length,
        pairs: pairs.length,
        'gain measured, %': gain(measured),
        'gain simulated, %': gain(simulated),
        'latency error, %': meanOf(
          fixed.map((budget) => 100 * Math.abs(simulated(budget) / measured(budget) - 1)),
        ),
      };
    });
    yield* rows;
    const sum = (name: 'pairs' | 'right') => rows.reduce((total, row) => total + row[name], 0);
    const mean = (name: 'gain measured, %' | 'gain simulated, %' | 'latency error, %') =>
      meanOf(rows.map((row) => row[name]));
    const near = rows.filter((row) => Math.abs(row['gain simulated, %'] - row['gain measured, %']) <= 4);
    yield {
      'all pairs': sum('pairs'),
      'right, %': (100 * sum('right')) / sum('pairs'),
      'gain measured, %': mean('gain measured, %'),
      'gain simulated, %': mean('gain simulated, %'),
      'gain within 4 points': `${near.length} of ${rows.length}`,
      'latency error, %': mean('latency error, %'),
    };
  },
});
