import { agentsOf, QUICK, type TaskCheck, THOROUGH } from '@servegym/agents';
import { llmserve, type MeanReturn, type ServeAction, type TaskReference } from '@servegym/environments';
import { alignedRows } from '@servegym/operators/report';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import type { EvaluateOptions } from './command.ts';
import { readInputs } from './read-play.ts';

/** Checks whether tasks are sound simulations and worth learning; ends with 1 when one is not. */
export async function checkTasks(
  effort: 'thorough' | 'quick' | 'recorded',
  options: EvaluateOptions,
): Promise<void> {
  const { env, json, policies } = options;
  if (policies.length > 0)
    throw new InputError(`--check checks tasks, and not policies: leave out ${policies.join(', ')}`);
  const { check, environment: entry } = agentsOf(env);
  const { task: asked, inputs } = await readInputs(options);
  const known = asked === 'all' ? entry.tasks.shippedIds : entry.tasks.ids();
  const taskIds = known.filter((id) => asked === 'all' || String(id) === asked);
  const file = entry.takes.includes('task') ? ', or a file that holds one' : '';
  if (taskIds.length === 0 || check === undefined)
    throw new InputError(
      `expected a task of ${env} that can be checked, one of ${known.join(', ')}${file}, got ${asked}`,
    );
  if (effort === 'recorded') {
    if (env !== llmserve.id)
      throw new InputError(`expected --env llmserve, whose reference returns are recorded, got ${env}`);
    return printReferences(taskIds.map(String), json);
  }
  const checked: TaskCheck[] = [];
  for (const id of taskIds) {
    const label = nameOf(id);
    showProgress(`${label} ...`);
    const outcome = await check(
      entry.tasks.find(id)!,
      effort === 'quick' ? QUICK : THOROUGH,
      (results) => showProgress(`${label}: ${results[0]?.group}`),
      inputs,
    );
    showProgress('');
    checked.push(outcome);
    if (!json) console.log(checkTable(outcome));
  }
  if (json) console.log(JSON.stringify(checked.map(checkJson), null, 2));
  if (checked.some(({ passed }) => !passed)) process.exitCode = 1;
}

const MARKS = { pass: 'pass', note: 'note', fail: 'FAIL' } as const;

const nameOf = (id: string | number) => (typeof id === 'number' ? `task ${id}` : id);

/** The checks of a task as text, with the figures below each. */
function checkTable({ taskId, difficulty, results, passed }: TaskCheck): string {
  const name = nameOf(taskId);
  const lines = [`${name} (${difficulty})`];
  let group = '';
  for (const result of results) {
    if (result.group !== group) {
      group = result.group;
      lines.push('', `  ${group}`);
    }
    lines.push(`  ${MARKS[result.outcome]}  ${result.title}`);
    for (const line of figureLines(result.figures)) lines.push(`        ${line}`);
    if (result.advice !== undefined) lines.push(`        > ${result.advice}`);
  }
  const failed = results.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id);
  const notes = results.filter(({ outcome }) => outcome === 'note').length;
  const summary = passed
    ? `${name} passes all ${results.length} checks${notes > 0 ? `, with ${notes} noted` : ''}`
    : `${name} FAILS ${failed.length} of ${results.length} checks: ${failed.join(', ')}`;
  lines.push('', summary, '');
  return lines.join('\n');
}

/** The checks of a task as JSON. */
function checkJson({ taskId, difficulty, results, passed, bestConstant }: TaskCheck) {
  return { task_id: taskId, difficulty, passed, best_constant: bestConstant, checks: results };
}

/** Numbers in one line; a text has a line of its own when it is long. */
function figureLines(figures: Readonly<Record<string, number | string>>): string[] {
  const short: string[] = [];
  const long: string[] = [];
  for (const [name, value] of Object.entries(figures)) {
    const text = `${name} ${typeof value === 'number' ? Number(value.toPrecision(4)) : value}`;
    (text.length > 40 ? long : short).push(text);
  }
  return [...(short.length > 0 ? [short.join('   ')] : []), ...long];
}

type References = Readonly<Record<string, TaskReference | undefined>>;

/** Prints the returns behind the scores: of the default, the best constant, and planners with and without foresight. */
function printReferences(taskIds: readonly string[], json: boolean): void {
  const references = Object.fromEntries(taskIds.map((id) => [id, llmserve.anchors.reference(id as never)]));
  printResult(
    json,
    () => referencesJson(references),
    () => referencesTable(references),
  );
}

/** Room to adapt below which a share of it is noise. */
const LEAST_ROOM = 0.05;

/** The object that `evaluate --check recorded --json` prints. */
function referencesJson(references: References) {
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

/** Text of `evaluate --check recorded`: a row for each task, over its test seeds. */
export function referencesTable(references: References): string {
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
