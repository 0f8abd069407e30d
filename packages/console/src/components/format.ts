import { UNITS } from '@servegym/operators/report';

export const { amount, count, dollars, latency: latencyTick, percent } = UNITS;

/** A share of one where tenths matter: `98.7 %`. */
export function finePercent(value: number): string {
  return value === 1 ? percent(value) : `${(value * 100).toFixed(1)}\u202f%`;
}

/** Milliseconds split into figure and unit: `850 ms`, `3.2 s`, `48 s`. */
function latency(ms: number): [figure: string, unit: string] {
  if (ms < 10) return [ms.toFixed(1), 'ms'];
  if (ms < 1000) return [ms.toFixed(0), 'ms'];
  const seconds = ms / 1000;
  return [seconds < 10 ? seconds.toFixed(1) : count(seconds), 's'];
}

export function latencyText(ms: number): string {
  return latency(ms).join('\u202f');
}

/** Simulated time: `4:05`, `1:02:30`. */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  const pad = (part: number) => String(part).padStart(2, '0');
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${pad(whole % 60)}`;
  return `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(whole % 60)}`;
}

/** A signed figure: `+0.31`, `−0.20`. */
export function signed(value: number): string {
  const text = Math.abs(value).toFixed(2);
  if (Number(text) === 0) return '0.00';
  return value < 0 ? `−${text}` : `+${text}`;
}

const ACRONYMS: Readonly<Record<string, string>> = {
  gpu: 'GPU',
  gb: 'GB',
  id: 'ID',
  itl: 'ITL',
  kv: 'KV',
  ms: 'ms',
  slo: 'SLO',
  tpot: 'TPOT',
  tps: 'tokens/s',
  ttft: 'TTFT',
  usd: 'USD',
};

/** A machine name as words: `best_effort` becomes `Best effort`, `p99_ttft_ms` becomes `P99 TTFT ms`. */
export function words(name: string): string {
  const spaced = name
    .split(/[\s_-]+/)
    .map((word) => ACRONYMS[word] ?? word)
    .join(' ');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}
