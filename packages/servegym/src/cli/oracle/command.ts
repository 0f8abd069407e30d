import {
  llmserve,
  type MeanReturn,
  type ServeAction,
  type TaskId,
  type TaskReference,
} from '@servegym/environments';
import { alignedRows } from '@servegym/operators/report';
import { Command, Option } from 'commander';
import { printResult } from '../output/print-result.ts';

interface OracleOptions {
  readonly task: TaskId | 'all';
  readonly json: boolean;
}

/** `servegym oracle`: what traffic is worth, to a fixed configuration and to planners. */
export function oracleCommand(): Command {
  return new Command('oracle')
    .description(
      'Show the reference returns behind the scores: those of the default, of the best fixed configuration, and of planners with and without knowledge of future traffic.',
    )
    .addOption(
      new Option('--task <id>', 'a task').choices([...llmserve.tasks.shippedIds, 'all']).default('all'),
    )
    .option('--json', 'print one JSON object', false)
    .action(oracle);
}

function oracle({ task, json }: OracleOptions): void {
  const taskIds = task === 'all' ? llmserve.tasks.shippedIds : [task];
  const references = Object.fromEntries(taskIds.map((id) => [id, llmserve.anchors.reference(id)]));
  printResult(
    json,
    () => oracleJson(references),
    () => oracleTable(references),
  );
}

/** Room to adapt below which a share of it is noise. */
const LEAST_ROOM = 0.05;

type References = Readonly<Record<string, TaskReference | undefined>>;

/** The object that `oracle --json` prints. */
function oracleJson(references: References) {
  return Object.fromEntries(
    Object.entries(references).map(([id, reference]) => [
      id,
      reference === undefined
        ? null
        : {
            ...reference,
            test: llmserve.anchors.summary(
              llmserve.tasks.shipped[id as keyof typeof llmserve.tasks.shipped],
              reference,
            ),
          },
    ]),
  );
}

/** Text of `oracle`: a row for each task, over its test seeds. */
export function oracleTable(references: References): string {
  const rows = [
    [
      'task',
      'seeds',
      'default',
      'constant',
      'planner',
      'clairvoyant',
      'bound',
      'gap',
      'room',
      'planned share',
    ],
  ];
  const constants: string[] = [];
  for (const [id, reference] of Object.entries(references)) {
    if (reference === undefined) {
      rows.push([id, 'nothing recorded']);
      continue;
    }
    const summary = llmserve.anchors.summary(
      llmserve.tasks.shipped[id as keyof typeof llmserve.tasks.shipped],
      reference,
    );
    const { planner } = summary;
    rows.push([
      id,
      String(summary.seeds),
      meanText(summary.default),
      meanText(summary.constant),
      planner === null ? '' : `${meanText(planner)} (${planner.seeds})`,
      meanText(summary.clairvoyant),
      summary.bound.toFixed(1),
      summary.certificate_gap.toFixed(1),
      summary.room_to_adapt.toFixed(3),
      planner === null || summary.room_to_adapt < LEAST_ROOM ? '' : planner.gain_share.toFixed(2),
    ]);
    constants.push(`${id}: ${actionText(reference.constant)}`);
  }
  return [
    ...alignedRows(rows),
    '',
    'Mean returns over the test seeds, with 95 % intervals. Room to adapt: what the clairvoyant planner gains over the best',
    'constant, as a share of what it gains over the default. Gap: what the bound leaves above the clairvoyant. Planned share: of the',
    'gain of the clairvoyant over the best constant, what the planner without foresight takes, on the seeds that it has played.',
    '',
    'Best constant:',
    ...constants,
  ].join('\n');
}

function meanText({ mean, ci95: [low, high] }: MeanReturn): string {
  return `${mean.toFixed(1)} [${low.toFixed(1)}, ${high.toFixed(1)}]`;
}

function actionText(action: ServeAction): string {
  return `cap ${action.batch_cap}, KV ${action.kv_budget_fraction}, depth ${action.speculation_depth}, ${action.quantization_tier}${action.prefill_decode_split ? ', split' : ''}${action.priority_routing ? ', priority' : ''}`;
}
