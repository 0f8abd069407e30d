import {
  type PrefillDecodeSplit,
  type ServingChange,
  type ServingConfig,
  WEIGHT_PRECISIONS,
} from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { amountOf } from '../arguments/options.ts';

const POLICIES = ['fcfs', 'priority'] as const;

/** Readers of the settings of a `--change`. */
const SETTINGS: Readonly<Record<string, (text: string) => Partial<ServingConfig> | undefined>> = {
  'max-num-seqs': (text) => number(text, (maxNumSeqs) => ({ maxNumSeqs })),
  'kv-budget-fraction': (text) => number(text, (kvBudgetFraction) => ({ kvBudgetFraction })),
  'speculation-depth': (text) => number(text, (speculationDepth) => ({ speculationDepth })),
  weights: (text) => choice(WEIGHT_PRECISIONS, text, (weights) => ({ weights })),
  policy: (text) => choice(POLICIES, text, (schedulingPolicy) => ({ schedulingPolicy })),
  split: (text) => choice(['true', 'false'] as const, text, (split) => ({ split: split === 'true' })),
};
/** Memory that tenants take on each GPU, GiB. */
const TENANT = 'tenant-gib';

/** Parses `60:weights=INT8,tenant-gib=12`: settings that change 60 s after the first arrival. */
export function parseChange(text: string): ServingChange {
  const [at, settings, ...rest] = text.split(':');
  const seconds = amountOf(at);
  if (seconds === undefined || settings === undefined || settings === '' || rest.length > 0) {
    throw new InvalidArgumentError(`Expected \`<seconds>:<setting>=<value>,...\`, got \`${text}\`.`);
  }
  const config: Partial<ServingConfig> = {};
  let tenantGiB: number | undefined;
  for (const setting of settings.split(',')) {
    const [name = '', value = ''] = setting.split('=');
    const read = SETTINGS[name];
    if (read === undefined && name !== TENANT) {
      const known = [...Object.keys(SETTINGS), TENANT].join(', ');
      throw new InvalidArgumentError(`Expected one of ${known}, got \`${name}\`.`);
    }
    const change = name === TENANT ? amountOf(value) : read(value);
    if (change === undefined) {
      throw new InvalidArgumentError(`Expected a value that \`${name}\` can have, got \`${value}\`.`);
    }
    if (typeof change === 'number') tenantGiB = change;
    else Object.assign(config, change);
  }
  return {
    atMs: 1000 * seconds,
    ...(tenantGiB !== undefined && { tenantGiB }),
    ...(Object.keys(config).length > 0 && { config }),
  };
}

/** Parses `2:1`, the engines that prefill and those that decode. */
export function parseSplit(text: string): PrefillDecodeSplit {
  const [, prefill, decode] = /^([1-9]\d{0,3}):([1-9]\d{0,3})$/.exec(text) ?? [];
  if (decode === undefined) {
    throw new InvalidArgumentError(`Expected \`<prefill engines>:<decode engines>\`, got \`${text}\`.`);
  }
  return { prefill: Number(prefill), decode: Number(decode) };
}

function number<T>(text: string, change: (value: number) => T): T | undefined {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) ? change(value) : undefined;
}

function choice<C extends string, T>(
  choices: readonly C[],
  text: string,
  change: (value: C) => T,
): T | undefined {
  const found = choices.find((each) => each === text);
  return found === undefined ? undefined : change(found);
}
