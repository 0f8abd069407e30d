import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { dollars, latencyText, latencyTick } from '../components/format.ts';
import { enginesText, type Plan, paretoFront } from './plan-client.ts';

const HEIGHT = 320;
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 16, 16, 44];

/** The plans found so far, USD an hour against TTFT p99, with the front drawn through. */
export function FrontChart({ plans }: { plans: readonly Plan[] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(640);
  useEffect(() => {
    const sizes = new ResizeObserver(([entry]) => {
      width.value = Math.max(280, entry.contentRect.width);
    });
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, [width]);
  const front = paretoFront(plans);
  const times = plans.map(({ ttft_p99_ms }) => Math.max(1, ttft_p99_ms));
  const low = Math.log10(Math.min(100, ...times) / 1.3);
  const high = Math.log10(Math.max(1000, ...times) * 1.3);
  const top = Math.max(1, ...plans.map(({ usd_per_hour }) => usd_per_hour)) * 1.1;
  const x = (ms: number) =>
    LEFT + ((Math.log10(Math.max(1, ms)) - low) / (high - low)) * (width.value - LEFT - RIGHT);
  const y = (usd: number) => HEIGHT - BOTTOM - (usd / top) * (HEIGHT - TOP - BOTTOM);
  const place = (plan: Plan) => `${x(plan.ttft_p99_ms)} ${y(plan.usd_per_hour)}`;
  const marks = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000].filter(
    (ms) => Math.log10(ms) > low && Math.log10(ms) < high,
  );
  const step = niceStep(top / 4);
  const prices = Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
  return (
    <div class="front" ref={box}>
      <svg
        width={width.value}
        height={HEIGHT}
        role="img"
        aria-label={`${plans.length} plans by price and time to first token, ${front.length} of them on the front`}
      >
        {prices.map((usd) => (
          <g key={usd}>
            <path d={`M${LEFT} ${y(usd)}H${width.value - RIGHT}`} class="grid" />
            <text x={LEFT - 6} y={y(usd) + 4} text-anchor="end">
              {dollars(usd)}
            </text>
          </g>
        ))}
        {marks.map((ms) => (
          <text key={ms} x={x(ms)} y={HEIGHT - BOTTOM + 18} text-anchor="middle">
            {latencyTick(ms)}
          </text>
        ))}
        <text x={(LEFT + width.value - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">
          time to first token, slowest 1 %
        </text>
        {front.length > 1 && <path d={`M${front.map(place).join('L')}`} class="line" />}
        {[...plans.filter((plan) => !front.includes(plan)), ...front].map((plan) => (
          <circle
            key={enginesText(plan)}
            cx={x(plan.ttft_p99_ms)}
            cy={y(plan.usd_per_hour)}
            r={front.includes(plan) ? 6 : 4.5}
            class={front.includes(plan) ? 'on-front' : ''}
          >
            <title>
              {`${enginesText(plan)}: ${dollars(plan.usd_per_hour)} an hour, TTFT p99 ${latencyText(plan.ttft_p99_ms)}`}
            </title>
          </circle>
        ))}
      </svg>
    </div>
  );
}

/** A step of 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((lead) => lead * power).find((step) => step >= least)!;
}
