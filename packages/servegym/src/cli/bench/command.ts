import { Command } from 'commander';
import { benchAgentsCommand } from './bench-agents-command.ts';
import { benchServerCommand } from './bench-server-command.ts';

/** `servegym bench`: measurements of servers and of agents. */
export function benchCommand(): Command {
  return new Command('bench')
    .description('measure servers and agents')
    .addCommand(benchServerCommand())
    .addCommand(benchAgentsCommand());
}
