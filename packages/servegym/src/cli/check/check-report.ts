import type { TaskCheck } from '@servegym/agents';

const MARKS = { pass: 'pass', note: 'note', fail: 'FAIL' } as const;

/** The checks of a task as text, with the figures below each. */
export function checkTable({ taskId, difficulty, results, passed }: TaskCheck): string {
  const name = typeof taskId === 'number' ? `task ${taskId}` : taskId;
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
export function checkJson({
  taskId,
  difficulty,
  results,
  passed,
  bestConstant,
}: TaskCheck): Record<string, unknown> {
  return {
    task_id: taskId,
    difficulty,
    passed,
    best_constant: bestConstant,
    checks: results,
  };
}

/** Numbers in one line; a text has a line of its own when it is long. */
function figureLines(figures: Readonly<Record<string, number | string>>): string[] {
  const short: string[] = [];
  const long: string[] = [];
  for (const [name, value] of Object.entries(figures)) {
    const text = `${name} ${typeof value === 'number' ? figure(value) : value}`;
    (text.length > 40 ? long : short).push(text);
  }
  return [...(short.length > 0 ? [short.join('   ')] : []), ...long];
}

function figure(value: number): string {
  return `${Number(value.toPrecision(4))}`;
}
