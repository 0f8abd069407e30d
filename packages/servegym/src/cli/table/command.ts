import { Command } from 'commander';
import { tableBuildCommand } from './table-build-command.ts';
import { tableCalibrateCommand } from './table-calibrate-command.ts';
import { tableCheckCommand } from './table-check-command.ts';

/** `servegym table`: the tables of measurements that `inferencegym` plays. */
export function tableCommand(): Command {
  return new Command('table')
    .description('make, check and calibrate the tables of measurements that inferencegym plays')
    .addCommand(tableBuildCommand())
    .addCommand(tableCheckCommand())
    .addCommand(tableCalibrateCommand());
}
