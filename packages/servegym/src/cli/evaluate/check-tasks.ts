import { agentsOf, QUICK, type TaskCheck, THOROUGH } from '@servegym/agents';
import { llmserve, type ServeAction, type TaskReference } from '@servegym/environments';
import { readInputs } from '../arguments/scenario-options.ts';
import { InputError, type Verdict } from '../failure.ts';
import { type Column, type Form, printResult, table } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import type { EvaluateOptions } from './command.ts';

/** Checks whether tasks are sound simulations and worth learning. */
export async function checkTasks(
  effort: 'thorough' | 'quick' | 'recorded',
  options: EvaluateOptions,
): Promise<Verdict> {
  const { env, json, policies } = options;
  if (policies.length > 0)
    throw new InputError(`--check checks tasks, and not policies: leave out ${policies.join(', ')}`);
  const { check, environment: entry } = agentsOf(env);
  const { task: asked, inputs } = await readInputs(options);
  const known = asked === 'all' ? entry.tasks.shippedIds : entry.tasks.ids();
  const taskIds = known.filter((id) => asked === 'all' || String(id) === asked);
  const file = entry.takes.includes('task') ? ', or a file that holds one' : '';
  if (check === undefined) throw new InputError(`${env} has no tasks to check: its steps only wait`);
  if (taskIds.length === 0)
    throw new InputError(
      `expected a task of ${env} that can be checked, one of ${known.join(', ')}${file}, got ${asked}`,
    );
  if (effort === 'recorded') {
    if (env !== llmserve.id)
      throw new InputError(`expected --env llmserve, whose reference returns are recorded, got ${env}`);
    const references = taskIds.map((id) => [id, llmserve.anchors.reference(id as never)] as const);
    printResult(json, Object.fromEntries(references), referencesForm);
    return 'yes';
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
  if (json) {
    const written = checked.map(({ taskId, difficulty, results, passed, bestConstant }) => ({
      ...{ task_id: taskId, difficulty, passed, best_constant: bestConstant, checks: results },
    }));
    console.log(JSON.stringify(written, null, 2));
  }
  return checked.every(({ passed }) => passed) ? 'yes' : 'no';
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

/** Returns behind the scores: of the default, the best constant, and planners with and without foresight. */
type References = Readonly<Record<string, TaskReference | undefined>>;

/** Room to adapt below which a share of it is noise. */
const LEAST_ROOM = 0.05;

const summaryOf = (id: string, reference: TaskReference) =>
  llmserve.anchors.summary(llmserve.tasks.shipped[id as keyof typeof llmserve.tasks.shipped], reference);

/** The reference returns of tasks over their test seeds. */
const referencesForm: Form<References> = {
  json: (references) =>
    Object.fromEntries(
      Object.entries(references).map(([id, reference]) => [
        id,
        reference === undefined ? null : { ...reference, test: summaryOf(id, reference) },
      ]),
    ),
  text: referencesTable,
};

export function referencesTable(references: References): string {
  const rows = Object.entries(references).map(([id, reference]) => ({
    id,
    summary: reference && summaryOf(id, reference),
  }));
  type Row = (typeof rows)[number];
  const column = (
    heading: string,
    cell: (summary: NonNullable<Row['summary']>) => string,
    nothing = '',
  ): Column<Row> => [heading, ({ summary }) => (summary === undefined ? nothing : cell(summary))];
  return [
    ...table(rows, [
      ['task', ({ id }) => id],
      column('seeds', ({ seeds }) => String(seeds), 'nothing recorded'),
      column('default', (summary) => meanText(summary.default)),
      column('constant', ({ constant }) => meanText(constant)),
      column('planner', ({ planner }) => (planner === null ? '' : `${meanText(planner)} (${planner.seeds})`)),
      column('clairvoyant', ({ clairvoyant }) => meanText(clairvoyant)),
      column('bound', ({ bound }) => bound.toFixed(1)),
      column('gap', ({ certificate_gap }) => certificate_gap.toFixed(1)),
      column('room', ({ room_to_adapt }) => room_to_adapt.toFixed(3)),
      column('planned share', ({ planner, room_to_adapt: room }) =>
        planner === null || room < LEAST_ROOM ? '' : planner.gain_share.toFixed(2),
      ),
    ]),
    '',
    'Mean returns over the test seeds, with 95 % intervals. Room to adapt: what the clairvoyant planner gains over the best',
    'constant, as a share of what it gains over the default. Gap: what the bound leaves above the clairvoyant. Planned share: of the',
    'gain of the clairvoyant over the best constant, what the planner without foresight takes, on the seeds that it has played.',
    '',
    'Best constant:',
    ...Object.entries(references).flatMap(([id, reference]) =>
      reference === undefined ? [] : [`${id}: ${actionText(reference.constant)}`],
    ),
  ].join('\n');
}

function meanText({
  mean,
  ci95: [low, high],
}: ReturnType<typeof llmserve.anchors.summary>['clairvoyant']): string {
  return `${mean.toFixed(1)} [${low.toFixed(1)}, ${high.toFixed(1)}]`;
}

function actionText(action: ServeAction): string {
  return `cap ${action.batch_cap}, KV ${action.kv_budget_fraction}, depth ${action.speculation_depth}, ${action.quantization_tier}${action.prefill_decode_split ? ', split' : ''}${action.priority_routing ? ', priority' : ''}`;
}
