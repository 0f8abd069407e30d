import type { ServingCommand } from '../deployment/serving-command.ts';
import { type Candidate, KNOB_NAMES } from '../tune/candidate.ts';

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

export function commandsJson(commands: readonly ServingCommand[]) {
  return commands.map(({ engine, pool, line, notExpressed }) => ({
    ...{ engine, ...(pool !== undefined && { pool }), line, not_expressed: notExpressed },
  }));
}

function commandTitle({ engine, pool }: Pick<ServingCommand, 'engine' | 'pool'>): string {
  return pool === undefined ? engine : `${engine}, ${pool}`;
}
