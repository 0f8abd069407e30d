import { createRequire } from 'node:module';
import { styleText } from 'node:util';
import type { Logger } from '@servegym/openenv';

export const LOG_FORMATS = ['pretty', 'json', 'silent'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** From the quietest to the most talkative. */
export const LOG_LEVELS = ['error', 'warn', 'info'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Tells what happens at the server, on standard error.
 * @param options.format `json` is a line of pino's for each entry
 * @param options.level least level that is written
 * @param options.write takes each line, with its end
 */
export function serverLog({
  format,
  level,
  write = (line) => void process.stderr.write(line),
}: {
  readonly format: LogFormat;
  readonly level: LogLevel;
  readonly write?: (line: string) => void;
}): Logger {
  const isLogged = (asked: LogLevel) =>
    format !== 'silent' && LOG_LEVELS.indexOf(asked) <= LOG_LEVELS.indexOf(level);
  let written: Logger | undefined;
  // pino is loaded with the first entry: most servers start without writing one.
  const log = () => (written ??= openLog(format === 'json' ? write : (line) => write(prettyLine(line))));
  return {
    info: (fields, message) => void (isLogged('info') && log().info(fields, message)),
    warn: (fields, message) => void (isLogged('warn') && log().warn(fields, message)),
    error: (fields, message) => void (isLogged('error') && log().error(fields, message)),
  };
}

function openLog(write: (line: string) => void): Logger {
  const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino');
  return pino(
    { timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
    { write },
  );
}

const COLOURS: Readonly<Record<LogLevel, 'green' | 'yellow' | 'red'>> = {
  info: 'green',
  warn: 'yellow',
  error: 'red',
};

/** `12:30:01 warn  session refused path=/ws code=CAPACITY_REACHED`, with the stack of an error below it. */
function prettyLine(json: string): string {
  const { time, level, msg, err, pid, hostname, ...fields } = JSON.parse(json);
  const clock = new Date(time).toTimeString().slice(0, 8);
  const name = styleText(COLOURS[level as LogLevel], level.padEnd(5), { stream: process.stderr });
  const details = Object.entries(fields).map(([field, value]) => ` ${field}=${prettyValue(value)}`);
  const stack = err ? `${err.stack.replace(/^/gm, '  ')}\n` : '';
  return `${clock} ${name} ${msg}${details.join('')}\n${stack}`;
}

function prettyValue(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@%+-]+$/.test(value) ? value : JSON.stringify(value);
}
