import { Command } from 'commander';
import { tableBuildCommand } from './table-build.ts';
import { tableCalibrateCommand } from './table-calibrate.ts';
import { tableCheckCommand } from './table-check.ts';

/** `servegym table`: the tables of measurements that `inferencegym` plays. */
export function tableCommand(): Command {
  return new Command('table')
    .description('make, check and calibrate the tables of measurements that inferencegym plays')
    .addCommand(tableBuildCommand())
    .addCommand(tableCheckCommand())
    .addCommand(tableCalibrateCommand());
}
