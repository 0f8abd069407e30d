import { Option } from 'commander';

/** `--task-file`: a task of one's own to do something with, in the place of one by its name. */
export function taskFileOption(): Option {
  return new Option(
    '--task-file <file>',
    'a task of your own, JSON or a module, in the place of --task',
  ).conflicts('task');
}
