import type { ServingCommand } from '../deployment/serving-command.ts';
import { type Candidate, KNOB_NAMES } from '../tune/candidate.ts';
import { escapeText } from './svg-chart.ts';

/** Settings by the names of `--knobs`. */
export function settingsJson(candidate: Candidate) {
  return Object.fromEntries(Object.entries(KNOB_NAMES).map(([name, knob]) => [name, candidate[knob]]));
}

/** Commands for a terminal, each below an empty line. */
export function commandLines(commands: readonly ServingCommand[]): string[] {
  return commands.flatMap(({ engine, pool, line, notExpressed }) => [
    '',
    `${commandTitle({ engine, pool })}:`,
    `  ${line}`,
    ...notExpressed.map((note) => `  not in the line: ${note}`),
  ]);
}

/** Commands as HTML, an option a line, as shells take them. */
export function commandsHtml(commands: readonly ServingCommand[]): string {
  const each = commands.map(({ engine, pool, line, notExpressed }) => {
    const lines = escapeText(line.replaceAll(' --', ' \\\n  --'));
    const notes = notExpressed.map((note) => `<li>not in the line: ${escapeText(note)}</li>`);
    return `<div><p><b>${escapeText(commandTitle({ engine, pool }))}</b></p><pre>${lines}</pre>${notes.length === 0 ? '' : `<ul>${notes.join('')}</ul>`}</div>`;
  });
  return `<div class="commands">${each.join('')}</div>`;
}

export function commandsJson(commands: readonly ServingCommand[]) {
  return commands.map(({ engine, pool, line, notExpressed }) => ({
    ...{ engine, ...(pool !== undefined && { pool }), line, not_expressed: notExpressed },
  }));
}

function commandTitle({ engine, pool }: Pick<ServingCommand, 'engine' | 'pool'>): string {
  return pool === undefined ? engine : `${engine}, ${pool}`;
}
