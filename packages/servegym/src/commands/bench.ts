import { Command } from 'commander';
import { benchAgentsCommand } from './bench-agents.ts';
import { benchServerCommand } from './bench-server.ts';

/** `servegym bench`: measurements of servers and of agents. */
export function benchCommand(): Command {
  return new Command('bench')
    .description('measure servers and agents')
    .addCommand(benchServerCommand())
    .addCommand(benchAgentsCommand());
}
