/**
 * Static token budgets (`max_num_batched_tokens`) and P-PAS on an RTX 5090 beside what was measured there with vLLM 0.22:
 * which of two budgets answers sooner under which arrivals, and what P-PAS gains over the best of them.
 *
 * Each model has an estimated profile, some of whose coefficients are fitted to the static budgets of seed 0. All other seeds,
 * and P-PAS everywhere, are predictions. Needs `--data FOLDER` (docs/reference-data.md).
 *
 *     npx node benchmarks/token-budgets.ts --data FOLDER [--json]
 */
import { parseArgs } from 'node:util';
import {
  budgetOf,
  FITTED_SEED,
  fittedProfile,
  MODELS,
  modelOf,
  P_PAS,
  play,
  type Run,
  readRuns,
} from './rtx5090-runs.ts';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

/** Measured latencies that differ by no more than this share are no pair. */
const LEAST_DIFFERENCE = 0.05;
const runs = readRuns(values.data);
const profiles = new Map(MODELS.map((model) => [model, fittedProfile(model, runs)]));
report();

function report(): void {
  const cells = Map.groupBy(
    runs.filter(({ seed }) => seed !== FITTED_SEED),
    (run) =>
      [modelOf(run), run.phase_schedule, run.configured_prompt_tokens, run.configured_output_tokens].join(
        ' ',
      ),
  );
  const rows = [...cells].map(([, ofCell]) => {
    const budgets = Map.groupBy(ofCell, budgetOf);
    const mean = (budget: string, of: (run: Run) => number) => {
      const some = budgets.get(budget)!;
      return some.reduce((sum, run) => sum + of(run) / some.length, 0);
    };
    const measured = (budget: string) => mean(budget, (run) => run.avg_latency);
    const latencies = new Map(
      [...budgets].map(([budget, some]) => [
        budget,
        some.reduce((sum, run) => sum + play(run, profiles.get(modelOf(run))!).latency / some.length, 0),
      ]),
    );
    const simulated = (budget: string) => latencies.get(budget)!;
    const fixed = [...budgets.keys()].filter((budget) => budget !== P_PAS);
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
      peak_rate: Math.max(...run.phase_schedule.split(',').map((phase) => Number(phase.split(':')[1]))),
      best_measured: best(measured),
      best_simulated: best(simulated),
      right: pairs.filter(([a, b]) => measured(a) < measured(b) === simulated(a) < simulated(b)).length,
      pairs: pairs.length,
      gain_measured: Number(gain(measured).toFixed(1)),
      gain_simulated: Number(gain(simulated).toFixed(1)),
      latency_error_percent: Number(
        (
          fixed.reduce((sum, each) => sum + 100 * Math.abs(simulated(each) / measured(each) - 1), 0) /
          fixed.length
        ).toFixed(1),
      ),
      latencies_s: Object.fromEntries(
        [...budgets.keys()].map((each) => [each, [measured(each), simulated(each)]]),
      ),
    };
  });
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + of(row), 0);
  const apart = rows.map((row) => Math.abs(row.gain_simulated - row.gain_measured));
  const result = {
    pairs: sum((row) => row.pairs),
    right_percent: Number(((100 * sum((row) => row.right)) / sum((row) => row.pairs)).toFixed(1)),
    gain_measured: Number((sum((row) => row.gain_measured) / rows.length).toFixed(1)),
    gain_simulated: Number((sum((row) => row.gain_simulated) / rows.length).toFixed(1)),
    gain_within_4_points: `${apart.filter((points) => points <= 4).length} of ${rows.length}`,
    latency_error_percent: Number((sum((row) => row.latency_error_percent) / rows.length).toFixed(1)),
  };
  if (values.json) {
    const laws = Object.fromEntries([...profiles].map(([model, { weights }]) => [model, weights.FP16!.law]));
    console.log(JSON.stringify({ ...result, loads: rows, laws }));
    return;
  }
  console.table(rows.map(({ latencies_s: _, ...row }) => row));
  console.log(result);
}
