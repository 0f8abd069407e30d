import { Command } from 'commander';
import { benchServerCommand } from './bench-server-command.ts';

/** `servegym bench`: measurements of servers. */
export function benchCommand(): Command {
  return new Command('bench').description('measure servers').addCommand(benchServerCommand());
}
