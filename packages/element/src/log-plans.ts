import { escaped } from '@servegym/operators/report';
import { rateText, usdText } from './curve-charts.ts';
import { htmlTable, timeText } from './line-chart.ts';
import type { LogAnswer, LogPlan } from './plan-log.ts';

/** The control that takes a log, and the place of its plans. */
export const LOG_PART = `<section class="log" aria-label="Plan for a log">
<label class="drop">Have a log? Drop it here, or choose it: the cheapest GPUs for it, from the model and the SLO above
<input type="file" accept=".csv,.jsonl,.ndjson,.json,.txt,.gz,.parquet">
<small>CSV, JSON lines, .gz or Parquet, up to 2 million requests. Read in this page, and sent nowhere.</small></label>
<p class="work" hidden><progress max="1" aria-label="Plan for the log"></progress><span></span><button type="button">Cancel</button></p>
<div class="plans" role="status"></div>
</section>`;

const weightsOf = ({ pools }: LogPlan) => [...new Set(pools.map(({ weights }) => weights))].join(', ');
const enginesOf = ({ pools }: LogPlan) =>
  pools
    .map(({ engines, profile, role }) => `${engines} x ${profile}${role === 'all' ? '' : ` to ${role}`}`)
    .join(' + ');

const HEADS = 'Engines, Weights, GPUs, USD/h, USD/M out, TTFT p99, TPOT p99, Headroom, Rests on'.split(', ');

function table(plans: readonly LogPlan[], heads = HEADS): string {
  const rows = plans.map((plan) => [
    ...[enginesOf(plan), weightsOf(plan), String(plan.gpus), usdText(plan.usdPerHour)],
    ...[usdText(plan.usdPerMillionOutputTokens), timeText(plan.ttftP99Ms), timeText(plan.tpotP99Ms)],
    ...[`${rateText(plan.headroom)}x`, plan.restsOn, ...(heads === HEADS ? [] : [plan.assumes.join(', ')])],
  ]);
  return `<div class="scroll" tabindex="0" role="region" aria-label="Plans">${htmlTable(heads, rows)}</div>`;
}

/** Plans for a log as HTML: those that rest on measurements first, then those on assumptions. */
export function logPlans(
  name: string,
  { requests, requestsSimulated, requestsPerS, hours, plans, riskier, notPlanned }: LogAnswer,
) {
  const measured = plans.find(({ restsOn }) => restsOn === 'measured') ?? plans[0];
  const traffic = `${escaped(name)}: ${requests.toLocaleString('en-US')} requests in ${rateText(hours)} h, ${rateText(requestsPerS)} a second.`;
  const answer =
    measured === undefined
      ? 'No GPU meets the SLO by what was measured.'
      : `Cheapest that was ${measured.restsOn === 'measured' ? 'measured' : `planned, on ${measured.restsOn}`}: <b>${enginesOf(measured)}, ${weightsOf(measured)}, for ${usdText(measured.usdPerHour)} an hour</b> (${usdText(measured.usdInterval.low)} to ${usdText(measured.usdInterval.high)}). It sustains ${rateText(measured.headroom)} times this load.<pre tabindex="0">${escaped(measured.lines[0] ?? '')}</pre>`;
  const others =
    riskier.length === 0
      ? ''
      : `<details${plans.length === 0 ? ' open' : ''}><summary>On assumptions, to be measured before you buy: ${riskier.length}</summary>${table(riskier, [...HEADS, 'Assumes'])}</details>`;
  return `<p>${traffic} ${answer}</p>${plans.length === 0 ? '' : table(plans)}${others}<p class="notes">${notPlanned === 0 ? '' : `Not planned: ${notPlanned} kinds of engines. `}${requestsSimulated.toLocaleString('en-US')} requests are simulated at each load.</p>`;
}
