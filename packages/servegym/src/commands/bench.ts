import { Command } from 'commander';
import { benchServerCommand } from './bench-server.ts';

/** `servegym bench`: measurements of what is running. */
export function benchCommand(): Command {
  return new Command('bench').description('measure servers').addCommand(benchServerCommand());
}
