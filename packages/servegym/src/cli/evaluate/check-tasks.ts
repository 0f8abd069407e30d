import { agentsOf, QUICK, type TaskCheck, THOROUGH } from '@servegym/agents';
import { llmserve, type ServeAction, type TaskReference } from '@servegym/environments';
import { readInputs } from '../arguments/scenario-options.ts';
import { InputError, type Verdict } from '../failure.ts';
import { type Form, printResult, table } from '../output/print-result.ts';
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
  const written = checked.map(({ taskId, difficulty, results, passed, bestConstant }) => ({
    ...{ task_id: taskId, difficulty, passed, best_constant: bestConstant, checks: results },
  }));
  if (json) console.log(JSON.stringify(written, null, 2));
  return checked.every(({ passed }) => passed) ? 'yes' : 'no';
}

const nameOf = (id: string | number) => (typeof id === 'number' ? `task ${id}` : id);

function checkTable({ taskId, difficulty, results, passed }: TaskCheck): string {
  const name = nameOf(taskId);
  const lines = [`${name} (${difficulty})`];
  for (const [i, { group, outcome, title, figures, advice }] of results.entries()) {
    if (group !== results[i - 1]?.group) lines.push('', `  ${group}`);
    lines.push(`  ${outcome === 'fail' ? 'FAIL' : outcome}  ${title}`);
    for (const line of figureLines(figures)) lines.push(`        ${line}`);
    if (advice !== undefined) lines.push(`        > ${advice}`);
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
  const texts = Object.entries(figures).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? Number(value.toPrecision(4)) : value}`,
  );
  const short = texts.filter((text) => text.length <= 40).join('   ');
  return [...(short === '' ? [] : [short]), ...texts.filter((text) => text.length > 40)];
}

/** Returns behind the scores: of the default, the best constant, and planners with and without foresight. */
type References = Readonly<Record<string, TaskReference | undefined>>;

/** Room to adapt below which a share of it is noise. */
const LEAST_ROOM = 0.05;

const summaryOf = (id: string, reference: TaskReference) =>
  llmserve.anchors.summary(llmserve.tasks.shipped[id as keyof typeof llmserve.tasks.shipped], reference);

const referencesForm: Form<References> = {
  json(references) {
    const withTest = ([id, reference]: [string, TaskReference | undefined]) =>
      [id, reference ? { ...reference, test: summaryOf(id, reference) } : null] as const;
    return Object.fromEntries(Object.entries(references).map(withTest));
  },
  text: referencesTable,
};

export function referencesTable(references: References): string {
  const entries = Object.entries(references);
  const rows = entries.flatMap(([id, reference]) => (reference ? [{ id, ...summaryOf(id, reference) }] : []));
  const shareOf = (planner: (typeof rows)[number]['planner']) => planner?.gain_share.toFixed(2) ?? '';
  return [
    ...table(
      rows,
      [
        ['task', ({ id }) => id],
        ['seeds', ({ seeds }) => String(seeds)],
        ['default', (summary) => meanText(summary.default)],
        ['constant', ({ constant }) => meanText(constant)],
        ['planner', ({ planner }) => (planner === null ? '' : `${meanText(planner)} (${planner.seeds})`)],
        ['clairvoyant', ({ clairvoyant }) => meanText(clairvoyant)],
        ['bound', ({ bound }) => bound.toFixed(1)],
        ['gap', ({ certificate_gap }) => certificate_gap.toFixed(1)],
        ['room', ({ room_to_adapt }) => room_to_adapt.toFixed(3)],
        ['planned share', ({ planner, ...of }) => (of.room_to_adapt < LEAST_ROOM ? '' : shareOf(planner))],
      ],
      entries.flatMap(([id, reference]) => (reference ? [] : [[id, 'nothing recorded']])),
    ),
    '',
    'Mean returns over the test seeds, with 95 % intervals. Room to adapt: what the clairvoyant planner gains over the best',
    'constant, as a share of what it gains over the default. Gap: what the bound leaves above the clairvoyant. Planned share: of the',
    'gain of the clairvoyant over the best constant, what the planner without foresight takes, on the seeds that it has played.',
    '',
    'Best constant:',
    ...entries.flatMap(([id, reference]) => (reference ? [`${id}: ${actionText(reference.constant)}`] : [])),
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
